"""Many machines on one: network namespaces, PostgreSQL, Redis, an S3 server, and Celery workers."""
