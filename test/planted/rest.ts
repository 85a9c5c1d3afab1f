import { inFile, type PlantedBug } from './planted-bug.ts'

const REQUESTS = ['test/sources/rest/requests.test.ts']
const PARTITIONS = ['test/sources/rest/partitions.test.ts']
const EXPORT = ['test/sources/rest/export.test.ts']
const EMPTY_ANSWERS = ['test/strategies/empty-answers.test.ts']
const OPENAPI = ['test/sources/rest/openapi.test.ts']
const PROMISE = ['test/sources/promise/rest.test.ts']
const MANIFESTS = ['test/config/mutated-manifests.test.ts']

/** Requests, formats, error rules, filters, partitions and export jobs of the `rest` source, and its manifests. */
export const REST_BUGS: readonly PlantedBug[] = [
  ...inFile('src/sources/rest/request-template.ts', REQUESTS, [
    [
      'a member without a value is sent as null',
      'return filled === undefined ? [] : [[name, filled]]',
      'return [[name, filled ?? null]]',
    ],
    [
      'an unknown placeholder is sent as it is',
      '[...placed].find((name) => !names.includes(name))',
      'undefined as string | undefined',
    ],
  ]),
  ...inFile('src/sources/rest/list-endpoint.ts', REQUESTS, [
    [
      'a refused cursor is ignored',
      'options.cursorRefusals?.includes(facts.status) !== true && isIgnored',
      'isIgnored',
    ],
    ['an ignored answer counts as a complete one', 'markIncomplete(context)', 'void context'],
    ['GraphQL errors are not noticed', '(isGraphql ? classifyGraphqlResponse(facts) : null)', 'null'],
  ]),
  ...inFile('src/sources/rest/record-filter.ts', REQUESTS, [
    ['a record that leaves the filter stays', '(isSelected(change, filters) ? change : toDeletion(change))', 'change'],
  ]),
  ...inFile('src/sources/rest/response-format.ts', REQUESTS, [
    ['a short row of a CSV is read', 'row.length !== names.length', 'row.length > names.length'],
  ]),
  ...inFile(
    'src/sources/kit/xml.ts',
    ['test/sources/kit/xml.test.ts'],
    [
      ['a truncated document is read', 'open.length > 1 ||', ''],
      ['a document type is read', "if (xml[start + 1] === '!')", 'if (false)'],
      ['text after a document is ignored', "`${text}${xml.slice(at)}`.trim() !== ''", 'false'],
    ],
  ),
  ...inFile('src/sources/rest/partitions.ts', PARTITIONS, [
    ['an ignored page of parents counts as complete', 'isMarkedIncomplete(asList)', 'false'],
    ['windows do not overlap at their start', 'new Date(startMs - unitMs)', 'new Date(startMs)'],
    [
      'the children of one page of parents are read',
      '...(page.hasMore && { next: page.nextState as JsonValue })',
      '...{}',
    ],
  ]),
  ...inFile('src/strategies/kit/answered-horizon.ts', EMPTY_ANSWERS, [
    ['an empty answer moves the tidemark', 'formatIso(Math.min(state.answeredMs, untilMs))', 'formatIso(untilMs)'],
  ]),
  ...inFile('src/strategies/kit/time-window.ts', EMPTY_ANSWERS, [
    [
      'an empty window moves the tidemark',
      'isConfirmed ? formatIso(untilMs) : confirmHorizon(state, untilMs)',
      'formatIso(untilMs)',
    ],
  ]),
  ...inFile('src/strategies/kit/timestamp-paging.ts', EMPTY_ANSWERS, [
    [
      'an empty page moves the tidemark',
      'isEmptyAnswer ? confirmHorizon(state, untilMs) : formatIso(horizonMs)',
      'formatIso(horizonMs)',
    ],
  ]),
  ...inFile('src/strategies/keyset.ts', EMPTY_ANSWERS, [
    [
      'an empty end moves the tidemark',
      'const isProven = items.length > 0 || !bounded || first !== undefined',
      'const isProven = true',
    ],
  ]),
  ...inFile('src/strategies/event-feed.ts', EMPTY_ANSWERS, [
    ['an empty log moves the tidemark', 'if (events.length === 0 && !hasMore)', 'if (false)'],
  ]),
  ...inFile('src/strategies/kit/time-window.ts', PROMISE, [
    ['the end of a window is believed at once', 'isUnproven && !isConfirmed', 'false'],
  ]),
  ...inFile('src/sources/rest/export-job.ts', EXPORT, [
    ['an empty export is believed at once', 'records === 0 && state.isEmpty !== true', 'false'],
    ['a short export is complete', 'state.total !== undefined && records < state.total', 'false'],
    ['a job is created again for ever', 'jobs >= JOBS_MAX', 'jobs < 0'],
    ['a job that expired fails the cycle', "error.code === 'CURSOR_REJECTED'", "error.code === 'CANCELLED'"],
  ]),
  ...inFile('src/config/manifest/manifest-document.ts', MANIFESTS, [
    ['a warning is overlooked', '...this.#document.errors, ...this.#document.warnings', '...this.#document.errors'],
    ['a misspelt required field has no suggestion', "keyword === 'required' ? findMisspelt", 'false ? findMisspelt'],
  ]),
  ...inFile('src/sources/rest/manifest-schema.ts', OPENAPI, [
    ['a kind of two words is not converted', 'schemas.toReversed()', 'schemas'],
  ]),
  ...inFile('src/sources/rest/openapi/document.ts', OPENAPI, [
    ['a cycle of references is followed for ever', 'seen.has(reference) || seen.size > REFERENCES_MAX', 'false'],
    ['a reference leaves the document', "if (!reference.startsWith('#'))", 'if (false)'],
  ]),
  ...inFile('src/sources/rest/openapi/paging.ts', OPENAPI, [
    [
      'a page size without a next page is a complete list',
      'if (size !== undefined) return `it has',
      'if (false) return `it has',
    ],
  ]),
  ...inFile('src/sources/rest/openapi/plan.ts', OPENAPI, [
    ['numbered pages are followed', "!['none', 'token', 'link'].includes(String(page.kind))", 'false'],
    ['unknown deletions are ignored', "deletes: 'sweep'", "deletes: 'ignore'"],
  ]),
  ...inFile('src/sources/rest/openapi/schema.ts', OPENAPI, [
    ['one record is a list', "if (members.has('id') || members.has('uuid'))", 'if (false)'],
  ]),
  ...inFile('src/cli/kit/rest-manifest.ts', OPENAPI, [
    ['a text of the document ends a comment', "line.replaceAll(/\\p{Cc}+/gu, ' ')", 'line'],
  ]),
  ...inFile('src/sources/rest/manifest-schema.ts', MANIFESTS, [
    ['names in camelCase are accepted', 'isProperties ? toSnakeCase(name) : name,', 'name,'],
  ]),
]
