import { inFile, type PlantedBug } from './planted-bug.ts'

const STREAMS = ['test/sources/airbyte/streams.test.ts']
const MANIFESTS = ['test/sources/airbyte/manifest.test.ts']
const TEMPLATES = ['test/sources/airbyte/jinja.test.ts']

/** The manifests of Airbyte. */
export const AIRBYTE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/sources/airbyte/cursor/datetime-cursor.ts', STREAMS, [
    [
      'windows of a cursor leave a gap',
      'if (to >= end || this.#granularity === null || !this.#isCoarse) return to',
      'if (to >= end || this.#granularity === null) return to',
      STREAMS,
      'border of two windows',
    ],
    [
      'a cursor starts after its newest record',
      'earlier : earlier - this.#unit',
      'earlier : earlier + this.#unit',
      STREAMS,
      'only what is new',
    ],
    ['the lookback window is ignored', 'shift(since, negate(this.#lookback))', 'since', STREAMS, 'lookback'],
  ]),
  ...inFile('src/sources/airbyte/read-changes.ts', STREAMS, [
    [
      'a record from the future moves the cursor',
      'facts.newest < horizon ? facts.newest : horizon',
      'facts.newest',
      STREAMS,
      'from the future',
    ],
    [
      'an ignored window moves the cursor',
      'if (isSkipped === true)',
      'if (false)',
      STREAMS,
      'that is ignored is read again',
    ],
    ['an empty window is taken at once', 'state?.isRepeated !== true) {', 'false) {', STREAMS, 'empty window twice'],
  ]),
  ...inFile('src/sources/airbyte/open-stream.ts', STREAMS, [
    [
      'an incremental stream needs no key',
      'if (keyPaths === null && !isListed)',
      'if (false)',
      STREAMS,
      'refused without a primary key',
    ],
  ]),
  ...inFile('src/sources/airbyte/manifest/support.ts', STREAMS, [
    [
      'other names of tokens are overlooked',
      "if (type === 'OAuthAuthenticator')",
      'if (false)',
      STREAMS,
      'does not authenticate',
    ],
  ]),
  ...inFile(
    'src/sources/airbyte/import-state.ts',
    ['test/sources/airbyte/import-state.test.ts'],
    [
      [
        'a later range is taken as read',
        '(a.start < b.start ? -1 : a.start > b.start ? 1 : 0)',
        '(a.start < b.start ? 1 : -1)',
      ],
      ['the lookback is forgotten', '- readLookback(facts, lookback, `${place}.lookback_window`)', ''],
      ['a time is shown', "it is not a time in the format ${formats[0] ?? ''}", 'it is not a time: ${text}'],
    ],
  ),
  ...inFile(
    'src/strategies/partitioned.ts',
    ['test/sources/airbyte/import-state.test.ts'],
    [
      [
        'a global cursor of another tool is ignored',
        'if (imported !== undefined && globalState !== undefined)',
        'if (false)',
      ],
    ],
  ),
  ...inFile('src/sources/airbyte/read-page.ts', STREAMS, [
    ['an ignored answer is an empty list', 'markIncomplete(run.context)\n', '\n', STREAMS, 'delete no rows'],
    ['a parent that is gone keeps its children', '&& !isGone', '', STREAMS, 'unless the parent is gone'],
  ]),
  ...inFile('src/sources/airbyte/partitions/list-partitions.ts', STREAMS, [
    [
      'a parent without its key is a partition',
      'if (value === undefined || value === null) return []',
      '',
      STREAMS,
      'of parents are read',
    ],
  ]),
  ...inFile('src/sources/airbyte/records/select.ts', STREAMS, [
    [
      'the filter decides the end of the pages',
      'extracted: found.length',
      'extracted: records.length',
      STREAMS,
      'by offset',
    ],
  ]),
  ...inFile('src/sources/airbyte/requests/send.ts', STREAMS, [
    [
      'a link leads to another host',
      'new URL(joined).origin !== new URL(base).origin',
      'false',
      STREAMS,
      'follows links',
    ],
  ]),
  ...inFile('src/sources/airbyte/requests/budget.ts', STREAMS, [
    [
      'the budget of requests is ignored',
      'sent.length < limit || oldest === undefined',
      'true',
      STREAMS,
      'rate of the budget',
    ],
  ]),
  ...inFile('src/sources/airbyte/manifest/resolve-references.ts', MANIFESTS, [
    [
      'a circular reference is followed',
      'if (this.#open.has(reference))',
      'if (false)',
      MANIFESTS,
      'leads back to itself',
    ],
  ]),
  ...inFile('src/sources/airbyte/jinja/interpolation.ts', TEMPLATES, [
    [
      'a rendered text is not read as a literal',
      'literal === null || !isValid(literal.value) ? rendered : literal.value',
      'rendered',
    ],
  ]),
  ...inFile('src/sources/airbyte/jinja/evaluate.ts', TEMPLATES, [
    ['a template never ends', 'if (this.#steps > STEPS_MAX)', 'if (false)', TEMPLATES, 'loop of loops'],
  ]),
]
