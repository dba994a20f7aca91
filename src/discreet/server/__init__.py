"""The collector on the web: reports come in over HTTP and are kept, settled and counted.

A report goes through these modules, in this order::

    app          routes and headers; problems, limits and access decide who may ask what
    reports      reads a body; intake makes it a row
    writer       one thread; takes what waits, one transaction for all of it, then answers
    arrivals     counted, repeated, id reused, withdrawn, closed: decided by the database
    settle       arrivals become reports, in batches of at least k and in the order of random ids
    tallies      what settled reports add up to; analysis makes statistics and a model of it

``database`` holds the tables and what differs between SQLite and PostgreSQL.
"""
