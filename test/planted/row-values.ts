import { inFile, type PlantedBug } from './planted-bug.ts'

const ROW_VALUES = ['test/destinations/row-values.pg.test.ts']
const ENCODED = 'encoded alike'

/** The values of rows that a load reads, and what destinations make of them. */
export const ROW_VALUES_BUGS: readonly PlantedBug[] = [
  ...inFile(
    'src/stores/sqlite/packed-rows.ts',
    ROW_VALUES,
    [
      [
        'doubles are read from JSON with 15 digits',
        'if (!Number.isNaN(double)) value = double',
        'if (!Number.isNaN(double)) value = Number(double.toPrecision(15))',
      ],
      ['a large integer is read as a double', "typeof value === 'number' ? value : BigInt(value)", 'Number(value)'],
      ['a row with `_extra` is read by its columns', 'case when _extra is null and 0', 'case when true and 0'],
      ['a long record is read by its columns', '<= ${VALUES_TEXT_MAX}', '<= 1e9', ROW_VALUES, 'long record'],
      ['a wide table is packed', 'columns.length <= COLUMNS_MAX &&', '', ROW_VALUES, 'thousand fields'],
      ['a page goes on beyond its bytes', 'if (bytes >= bytesMax) break', '', ROW_VALUES, 'pages end'],
      [
        'a page skips the rows after a chunk',
        "if (end !== '') last = (JSON.parse(end) as PackedLine)[0]",
        "if (end !== '') last = `${(JSON.parse(end) as PackedLine)[0]}\uffff`",
        ROW_VALUES,
        'pages end',
      ],
    ],
    ENCODED,
  ),
  ...inFile(
    'src/stores/kit/tables/row-values.ts',
    ROW_VALUES,
    [
      ['an absent field is null', "if (none === 'absent' || sequence < since) return undefined", ''],
      ['an empty text is null', "return none === 'null' ? null : ''", 'return null'],
    ],
    ENCODED,
  ),
  ...inFile(
    'src/stores/postgres/row-values.ts',
    ROW_VALUES,
    [
      ['a number loses digits', 'return parseNumber(value)', 'return Number(value)'],
      [
        'a timestamp has the form of the server',
        "return formatTimestamp(value, required(column.format, 'The format of a timestamp'))",
        'return value',
      ],
      [
        'a row with `_extra` is read by its columns in PostgreSQL',
        'if (extra !== null || size > VALUES_TEXT_MAX)',
        'if (size > VALUES_TEXT_MAX)',
      ],
      ['a page of PostgreSQL goes on beyond its bytes', 'if (bytes >= bytesMax) break', '', ROW_VALUES, 'pages end'],
    ],
    ENCODED,
  ),
  ...inFile(
    'src/stores/kit/tables/encode-record.ts',
    ROW_VALUES,
    [
      [
        'a value without a column is dropped',
        "for (const at of this.#others) addOther(draft, this.#members[at] ?? '', values[at])",
        '',
      ],
    ],
    ENCODED,
  ),
  ...inFile(
    'src/stores/postgres/copy.ts',
    ['test/destinations/copy-parts.test.ts'],
    [
      ['the last part of a COPY is dropped', 'if (writer !== null) yield writer.end()', ''],
      ['a part of a COPY is sent again', '    writer = null\n  }', '  }'],
    ],
  ),
  ...inFile('src/destinations/loop/read-batches.ts', ROW_VALUES, [
    [
      'rows that changed later are loaded by value',
      'if (page.sequence(index) > sequence) continue',
      '',
      ROW_VALUES,
      'changed later',
    ],
  ]),
  ...inFile(
    'src/destinations/postgres/descriptor.ts',
    ['test/destinations/registry.test.ts'],
    [['the documentation shows another type', "bytes: 'bytea'", "bytes: 'blob'"]],
  ),
]
