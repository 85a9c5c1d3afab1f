import { LinearSimulator } from '@tidemark/simulators'
import { linear } from '../../../sources/linear/source.ts'
import type { VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'
import { required } from '../../../values/required.ts'

const RESPONSE_FAULTS: ReadonlySet<string> = new Set([
  'wrong-date',
  'end-flag-never',
  'short-page',
  'partial-answer',
  'page-repeated',
])

/** A lookup resolves the ambiguity of a cached page; if the lookup were cached too, nothing could. */
function isPage(body: string): boolean {
  return 'after' in (JSON.parse(body) as { variables: object }).variables
}

/** Newest first, with cursors that follow their record when it moves; two budgets. */
export const linearIssues: VendorStream = {
  vendor: 'linear',
  name: 'issues',
  type: 'issue',
  keyField: 'id',
  lagMaxMs: 10_000,
  open: (ports, { lag, pageSize, limited }) =>
    new LinearSimulator(ports, { lag, pageSizeMax: pageSize, ...(limited && { requestsPerHour: 600 }) }),
  source: () => linear({ apiKey: 'TOKEN', baseUrl: 'https://vendor.test' }).issues,
  prepare: (simulator) => void simulator.create('team', { name: 'Engineering', key: 'ENG' }),
  parentFields: (simulator) => ({
    team: required(simulator.records.current('team')[0], 'the result of current[0]').id,
  }),
  fields: (n) => ({ title: formatWriteNumber(n) }),
  writeNumberOf: ({ title }) => parseWriteNumber(title),
  granularityMs: () => 1,
  rowOf: ({ teamId, ...record }) => ({ ...record, team: { id: teamId } }),
  supportsFault: (fault, { body }) => RESPONSE_FAULTS.has(fault) || (fault === 'cached-page' && isPage(body)),
  repeats: 'page-before',
  tokenOf: ({ body }) => (JSON.parse(body) as { variables: { after?: string | null } }).variables.after ?? null,
}

/** The same, followed by `updatedAt`. Only a listing finds deleted records. */
export const linearTracked: VendorStream = {
  ...linearIssues,
  name: 'tracked issues',
  supportsFault: (fault, request) =>
    // An empty answer to the lookup is not wrong: the record does not exist.
    ((fault === 'end-flag-early' || fault === 'empty-page') && isPage(request.body)) ||
    linearIssues.supportsFault(fault, request),
  withoutRows: () => ({ data: { issues: { nodes: [], pageInfo: { hasNextPage: false, endCursor: null } } } }),
  source: ({ pageSize }) => ({
    ...linear({ apiKey: 'TOKEN', baseUrl: 'https://vendor.test', limit: pageSize }).tracked.issues,
    guarantee: {
      windowMs: 16_000,
      startsFrom: 'first',
      reports: () => ({ changes: true, deletes: false }),
      cyclesPerRound: 1,
    },
  }),
}
