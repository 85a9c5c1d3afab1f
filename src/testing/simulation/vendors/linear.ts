import { linear } from '../../../sources/linear/source.ts'
import { LinearSimulator } from '../../simulators/linear/simulator.ts'
import type { VendorStream } from './vendor.ts'
import { numbered, writeIn } from './writes.ts'

/** Newest first, behind cursors that stand where their record stands; two budgets. */
export const linearIssues: VendorStream = {
  vendor: 'linear', name: 'issues', type: 'issue', keyField: 'id', lagMaxMs: 10_000,
  open: (ports, { lag, pageSize, limited }) => new LinearSimulator(ports, { lag, pageSizeMax: pageSize, ...(limited && { requestsPerHour: 600 }) }),
  source: () => linear({ apiKey: 'TOKEN', baseUrl: 'https://vendor.test' }).issues,
  prepare: (simulator) => void simulator.create('team', { name: 'Engineering', key: 'ENG' }),
  home: (simulator) => ({ team: simulator.records.current('team')[0]!.id }),
  fields: (n) => ({ title: numbered(n) }),
  writeOf: ({ title }) => writeIn(title),
  rowOf: ({ teamId, ...record }) => ({ ...record, team: { id: teamId } }),
  suffers: (fault) => fault === 'end-flag-never' || fault === 'short-page' || fault === 'partial-answer',
  tokenOf: ({ body }) => (JSON.parse(body) as { variables: { after?: string | null } }).variables.after ?? null,
}
