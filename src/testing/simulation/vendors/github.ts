import { GithubSimulator } from '@tidemark/simulators'
import { github } from '../../../sources/github/source.ts'
import type { VendorStream } from './vendor-stream.ts'
import { formatWriteNumber, parseWriteNumber } from './write-numbers.ts'
import { required } from '../../../values/required.ts'

const RESPONSE_FAULTS: ReadonlySet<string> = new Set([
  'wrong-date',
  'end-flag-never',
  'short-page',
  'partial-answer',
  'page-repeated',
  'wrong-total',
])

/** A lookup resolves the ambiguity of a cached page; if the lookup were cached too, nothing could. */
function isPage(body: string): boolean {
  return Object.keys((JSON.parse(body) as { variables: object }).variables).some((name) => name.startsWith('after'))
}

const open: VendorStream['open'] = (ports, { lag, pageSize, limited }) =>
  new GithubSimulator(ports, { lag, pageSizeMax: pageSize, pointsPerHour: limited ? 1_000 : 5_000 })
const supportsFault: VendorStream['supportsFault'] = (fault, { body }) =>
  RESPONSE_FAULTS.has(fault) || (fault === 'cached-page' && isPage(body))
const tokenOf: VendorStream['tokenOf'] = ({ body }) => {
  const { variables } = JSON.parse(body) as { variables: Record<string, unknown> }
  const token = Object.entries(variables).find(([name, value]) => name.startsWith('after') && typeof value === 'string')
  return token === undefined ? null : String(token[1])
}

/** Cursors that encode the sort key, a budget of points, responses with a part missing. */
export const githubRepositories: VendorStream = {
  vendor: 'github',
  name: 'repositories',
  type: 'repository',
  keyField: 'id',
  lagMaxMs: 10_000,
  open,
  source: () => github({ token: 'TOKEN', baseUrl: 'https://vendor.test' }).repositories,
  fields: (n) => ({ description: formatWriteNumber(n) }),
  writeNumberOf: ({ description }) => parseWriteNumber(description),
  granularityMs: () => 1_000,
  rowOf: ({ __typename: _type, ownerLogin: _owner, ...record }) => record,
  supportsFault,
  repeats: 'page-before',
  total: { path: ['data', 'owner', 'repositories', 'totalCount'] },
  tokenOf,
}

/** A nested list. */
export const githubIssues: VendorStream = {
  ...githubRepositories,
  name: 'issues',
  type: 'issue',
  source: ({ pageSize }) =>
    github({ token: 'TOKEN', baseUrl: 'https://vendor.test', repositoriesPerPage: Math.min(3, pageSize) }).issues,
  prepare: (simulator) => {
    for (let n = 0; n < 5; n++) simulator.create('repository', {})
  },
  parentFields: (simulator, chance) => ({ repository: chance.pick(simulator.records.current('repository')).id }),
  fields: (n) => ({ title: formatWriteNumber(n) }),
  writeNumberOf: ({ title }) => parseWriteNumber(title),
  rowOf: ({ __typename: _type, ...record }) => record,
}

/** Issues of one repository over REST: sorted by their last change in whole seconds, without a report of deletions. */
export const githubRepositoryIssues: VendorStream = {
  ...githubRepositories,
  name: 'repository issues',
  type: 'issue',
  open: (ports, { lag, limited }) =>
    new GithubSimulator(ports, { lag, requestsPerHour: limited ? 1_000 : 5_000, pointsPerMinute: limited ? 60 : 900 }),
  // More records change in one second than such a page holds.
  source: ({ pageSize }) => ({
    ...github({ token: 'TOKEN', baseUrl: 'https://vendor.test', recordsPerPage: Math.max(2, pageSize) }).repository(
      'acme/app',
    ).issues,
    guarantee: {
      windowMs: 16_000,
      startsFrom: 'first',
      reports: () => ({ changes: true, deletes: false }),
      cyclesPerRound: 1,
    },
  }),
  prepare: (simulator) => void simulator.create('repository', { owner: 'acme', name: 'app' }),
  parentFields: (simulator) => ({
    repository: required(simulator.records.current('repository')[0], 'the repository').id,
  }),
  fields: (n) => ({ title: formatWriteNumber(n) }),
  writeNumberOf: ({ title }) => parseWriteNumber(title),
  rowOf: ({ id: nodeId }, simulator) =>
    required(
      (simulator as GithubSimulator).restTruth('issue').find((row) => row['node_id'] === nodeId),
      'the issue in the REST API',
    ),
  supportsFault: (fault) => fault === 'wrong-date' || fault === 'page-repeated' || fault === 'cached-page',
  tokenOf: ({ url }) => url.searchParams.get('since'),
}
