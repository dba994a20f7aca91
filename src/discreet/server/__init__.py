"""The collector on the web: reports come in over HTTP and are kept, settled and counted.

A report goes through these modules, in this order::

    app          routes and headers; problems, limits and access decide who may ask what
    reports      reads a body; intake turns it into a row
    writer       one thread; stores all waiting reports in one transaction, then answers
    arrivals     counted, repeated, id reused, withdrawn, closed: decided by the database
    settling     arrivals become reports, in batches of at least k and in the order of random ids
    tallies      sums of settled reports; analysis computes statistics and a model from them

``database`` holds the tables and what differs between SQLite and PostgreSQL.
"""
