"""Copies the current rows of an Iceberg table to a Parquet file: read-iceberg.py <metadata.json> <out.parquet>"""

import sys

import pyarrow.parquet
from pyiceberg.table import StaticTable

table = StaticTable.from_metadata(sys.argv[1])
rows = table.scan().to_arrow()
pyarrow.parquet.write_table(rows, sys.argv[2])
print(rows.num_rows)
