import { inFile, type PlantedBug } from './planted-bug.ts'

const API = ['test/console/api.test.ts']
const TOTALS = ['test/stores/sqlite.test.ts']

/** The console's routes: who sees what, and what the charts count. */
export const CONSOLE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/server/console/fleet.ts', API, [
    [
      'every admin sees the syncs of all tenants',
      "return store.tenant === tenant && allowsScope(scopes, 'admin')",
      "return allowsScope(scopes, 'admin')",
    ],
    [
      'every key of the own tenant sees the syncs of all tenants',
      "return store.tenant === tenant && allowsScope(scopes, 'admin')",
      'return store.tenant === tenant && scopes.length > 0',
    ],
    [
      'the error message of another tenant is shown',
      'lastError: lastError === null ? null : { ...lastError, message: WITHHELD },',
      'lastError,',
    ],
    [
      'the cycle of another tenant keeps its message',
      'error: error === null ? null : { ...error, message: WITHHELD }',
      'error',
    ],
    ['undeclared syncs of another tenant are named', 'list.filter(({ isDeclared }) => isDeclared)', 'list'],
    ['a tenant that the worker does not serve is listed', '&& context.isServedTenant(tenant)', ''],
  ]),
  ...inFile('src/runner/late.ts', API, [
    ['one missed slot makes a sync late', 'const SLOTS_MISSED = 2', 'const SLOTS_MISSED = 1'],
    ['a slow sync is late while it runs as usual', 'Math.max(LATE_MIN_MS, 2 * lastMs)', 'LATE_MIN_MS'],
    ['a paused sync is late', 'lastSuccessAt === null || paused', 'lastSuccessAt === null'],
    [
      'a sync is late during its first backfill',
      'completeSince === null || lastSuccessAt === null || paused',
      'completeSince === null || paused',
    ],
    ['a sync of a stopped connection is late', "connection.status !== 'active'", "connection.status === 'active'"],
  ]),
  ...inFile('src/server/console/activity.ts', API, [
    ['the lag begins unknown in every range', 'before?.startedAt ?? null, now)', 'null, now)'],
    ['the chart of a sync shows those of all', '...window, at: now })', '...window, ref: null, at: now })'],
  ]),
  ...inFile('src/server/console/connection-routes.ts', API, [
    [
      'a link is created for another host',
      'if (request.headers.host !== new URL(connect.origin).host)',
      'if (request.headers.host === undefined)',
    ],
    [
      'a link is created without a connection',
      "if (found === null) throw new HttpError('NOT_FOUND'",
      "if (name === '') throw new HttpError('NOT_FOUND'",
    ],
  ]),
  ...inFile(
    'src/stores/kit/cycle-totals.ts',
    TOTALS,
    [
      [
        'a long cycle counts where it ends',
        'const share = isStep ? 1 : overlap / (end - startedAt)',
        'const share = 1',
      ],
      [
        'a failed cycle counts as complete',
        "max(case when stop_reason = 'complete' then started_at end)",
        'max(started_at)',
      ],
      ['cycles at the begin of the range are missed', 'found.at >= from - CLOCK_SKEW_MS', 'found.at >= from + 600_000'],
      ['a cycle that runs is left out', ' or ended_at is null and page is not null)', ')'],
      [
        'older cycles that reach into the range are left out',
        'and o.cycle_id < :floor)',
        'and o.cycle_id < :floor - 1000000)',
      ],
    ],
    'totals',
  ),
]
