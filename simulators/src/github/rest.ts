import { createHash } from 'node:crypto'
import { compareText } from '../kit/ids.ts'
import { formatPageLinks } from '../kit/page-links.ts'
import type { Fields } from '../kit/simulator.ts'
import type { RecordView } from '../kit/sorted-view.ts'
import type { RecordVersion, VersionedRecords } from '../kit/versioned-records.ts'

/** A list of the REST API, below `/repos/{owner}/{repo}`. */
interface RestList {
  readonly types: readonly string[]
  /** Its `since` is compared with the time of the last change, and includes it. */
  readonly hasSince?: true
  readonly hasState?: true
  readonly sorts: readonly string[]
  /** Without `direction`. */
  readonly isAscending: boolean
  /** The member of the body that holds the list. */
  readonly member?: string
}

const LISTS: Readonly<Record<string, RestList>> = {
  // Every pull request is also an issue.
  issues: {
    types: ['issue', 'pull_request'],
    hasSince: true,
    hasState: true,
    sorts: ['created', 'updated', 'comments'],
    isAscending: false,
  },
  'issues/comments': { types: ['issue_comment'], hasSince: true, sorts: ['created', 'updated'], isAscending: true },
  pulls: { types: ['pull_request'], hasState: true, sorts: ['created', 'updated'], isAscending: false },
  'pulls/comments': { types: ['review_comment'], hasSince: true, sorts: ['created', 'updated'], isAscending: true },
  commits: { types: ['commit'], sorts: ['created'], isAscending: false },
  releases: { types: ['release'], sorts: ['created'], isAscending: false },
  labels: { types: ['label'], sorts: ['created'], isAscending: true },
  milestones: { types: ['milestone'], hasState: true, sorts: ['created'], isAscending: true },
  'actions/runs': { types: ['workflow_run'], sorts: ['created'], isAscending: false, member: 'workflow_runs' },
  stargazers: { types: ['stargazer'], sorts: ['created'], isAscending: true },
}

/** The prefix of the node id of each type that only the REST part has. */
export const REST_ID_PREFIXES: Readonly<Record<string, string>> = {
  commit: 'C_kwDO',
  issue_comment: 'IC_kwDO',
  label: 'LA_kwDO',
  milestone: 'MI_kwDO',
  pull_request: 'PR_kwDO',
  release: 'RE_kwDO',
  review_comment: 'PRRC_kwDO',
  stargazer: 'U_kgDO',
  workflow_run: 'WFR_kwLO',
}

/** By repository, oldest first. */
const VIEWS = {
  created: createView(({ createdAtMs }) => createdAtMs),
  updated: createView(({ modifiedAtMs }) => modifiedAtMs),
}

export interface RestAnswer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** One GET below `/repos/{owner}/{repo}`. `rest` is the path after it. */
export function answerRest(
  records: VersionedRecords,
  repository: RecordVersion,
  rest: string,
  url: URL,
  lies: { readonly endFlag: 'end' | 'more' | undefined; readonly isShort: boolean },
): RestAnswer {
  const list = Object.hasOwn(LISTS, rest) ? LISTS[rest] : undefined
  if (list === undefined) return answerOne(records, repository, rest)
  const query = url.searchParams
  const perPage = Math.min(parseNatural(query, 'per_page') ?? 30, 100)
  const page = parseNatural(query, 'page') ?? 1
  const sort = query.get('sort') ?? 'created'
  const since = query.get('since')
  if (since !== null && Number.isNaN(Date.parse(since)))
    return { status: 422, body: { message: 'Validation Failed', status: '422' } }
  const view = sort === 'updated' && list.sorts.includes('updated') ? VIEWS.updated : VIEWS.created
  const isAscending = query.has('direction') ? query.get('direction') === 'asc' : list.isAscending
  const state = query.get('state') ?? 'open'
  const matching = list.types
    .flatMap((type) => [...records.sorted(type, view, repository.id)])
    .filter(
      (version) =>
        (list.hasState !== true || state === 'all' || stateOf(version) === state) &&
        (list.hasSince !== true || since === null || toSeconds(version.modifiedAtMs) >= toSeconds(Date.parse(since))) &&
        (rest !== 'commits' || isInCommitRange(version, query)),
    )
    .toSorted((a, b) => (isAscending ? view.order(a, b) : view.order(b, a)))
  const start = (page - 1) * perPage
  const rows = matching.slice(start, start + (lies.isShort ? Math.ceil(perPage / 2) : perPage))
  const shown = rows.map((version) => renderRest(version, repository))
  const link = formatPageLinks(url, page, Math.ceil(matching.length / perPage), lies.endFlag)
  return {
    status: 200,
    body: list.member === undefined ? shown : { total_count: matching.length, [list.member]: shown },
    ...(link !== undefined && { headers: { link } }),
  }
}

function answerOne(records: VersionedRecords, repository: RecordVersion, rest: string): RestAnswer {
  const missing = { status: 404, body: { message: 'Not Found', status: '404' } }
  const [, list = '', name] = /^(.+)\/([^/]+)$/.exec(rest) ?? []
  const types = Object.hasOwn(LISTS, list) ? LISTS[list]?.types : undefined
  const found = types
    ?.flatMap((type) => records.current(type))
    .find((version) => version.fields['repository'] === repository.id && matchesName(version, list, name, repository))
  return found === undefined ? missing : { status: 200, body: renderRest(found, repository) }
}

/** Issues and pull requests are read by number, commits by hash, everything else by id. */
function matchesName(
  version: RecordVersion,
  list: string,
  name: string | undefined,
  repository: RecordVersion,
): boolean {
  const shown = renderRest(version, repository)
  return String(list === 'commits' ? shown['sha'] : 'number' in shown ? shown['number'] : shown['id']) === name
}

/** The object of the REST API, with the fields that every object of its type has. */
export function renderRest(version: RecordVersion, repository: RecordVersion): Fields {
  const { type, fields } = version
  const name = `${String(repository.fields['owner'])}/${String(repository.fields['name'])}`
  const base = `https://api.github.com/repos/${name}`
  const user = { login: 'octocat', id: 1, type: 'User' }
  const times = { created_at: formatTimestamp(version.createdAtMs), updated_at: formatTimestamp(version.modifiedAtMs) }
  const common = { id: databaseIdOf(version), node_id: version.id }
  const { repository: _repository, ...given } = fields
  switch (type) {
    case 'issue':
    case 'pull_request': {
      const path = type === 'issue' ? 'issues' : 'pulls'
      return {
        ...common,
        url: `${base}/${path}/${String(fields['number'])}`,
        number: fields['number'],
        title: '',
        body: null,
        user,
        labels: [],
        assignees: [],
        milestone: null,
        locked: false,
        closed_at: null,
        ...(type === 'pull_request' && {
          merged_at: null,
          pull_request: { url: `${base}/pulls/${String(fields['number'])}` },
        }),
        ...given,
        ...times,
        state: stateOf(version),
      }
    }
    case 'commit':
      return {
        sha: createHash('sha1').update(version.id).digest('hex'),
        node_id: version.id,
        commit: {
          message: fields['message'] ?? '',
          author: { name: 'Octo', email: 'octo@example.com', date: times.created_at },
          committer: { name: 'Octo', email: 'octo@example.com', date: times.created_at },
        },
        author: user,
        committer: user,
        parents: [],
      }
    case 'label':
      return { ...common, name: '', color: 'ffffff', default: false, description: null, ...given }
    case 'stargazer':
      return { starred_at: times.created_at, user: { ...user, ...common, login: `user-${common.id}` } }
    case 'release':
      return {
        ...common,
        tag_name: '',
        name: null,
        body: null,
        draft: false,
        prerelease: false,
        assets: [],
        ...given,
        ...times,
      }
    case 'milestone':
      return { ...common, title: '', description: null, ...given, ...times, state: stateOf(version) }
    case 'workflow_run':
      return { ...common, name: 'build', run_number: 1, status: 'completed', conclusion: 'success', ...given, ...times }
    default:
      return { ...common, body: '', user, ...given, ...times }
  }
}

function stateOf({ fields }: RecordVersion): string {
  return String(fields['state'] ?? 'open').toLowerCase()
}

function isInCommitRange({ createdAtMs }: RecordVersion, query: URLSearchParams): boolean {
  const [since, until] = [query.get('since'), query.get('until')]
  return (
    (since === null || toSeconds(createdAtMs) >= toSeconds(Date.parse(since))) &&
    (until === null || toSeconds(createdAtMs) <= toSeconds(Date.parse(until)))
  )
}

function createView(timeOf: (version: RecordVersion) => number): RecordView {
  return {
    reads: 'index',
    includes: ({ deleted }) => !deleted,
    group: ({ fields }) => String(fields['repository']),
    order: (a, b) =>
      toSeconds(timeOf(a)) - toSeconds(timeOf(b)) || databaseIdOf(a) - databaseIdOf(b) || compareText(a.id, b.id),
  }
}

/** The last characters of a node id are the number of the object. */
export function databaseIdOf({ id }: RecordVersion): number {
  return Number.parseInt(id.slice(-4), 36)
}

function parseNatural(query: URLSearchParams, name: string): number | undefined {
  const given = query.get(name) ?? ''
  return /^[1-9]\d*$/.test(given) ? Number(given) : undefined
}

function toSeconds(ms: number): number {
  return Math.floor(ms / 1_000)
}

/** Whole seconds, as GitHub writes them. */
export function formatTimestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
