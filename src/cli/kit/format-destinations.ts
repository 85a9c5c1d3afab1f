import type { DestinationOverview } from '../../destinations/loop/destination-overview.ts'
import type { Health } from '../../runner/health.ts'
import type { Cli } from '../cli.ts'
import { formatNumber } from './counts.ts'
import { formatAgo, formatDuration } from './duration.ts'
import { toPrintable } from './printable.ts'
import { adviceFor } from './report-error.ts'
import { describeSchedule } from './sync-status.ts'
import { formatTable } from './table.ts'
import { addTargetFlags } from './target-flags.ts'

/** A table of destinations, and a line for each that fails. */
export function formatDestinations(cli: Cli, overviews: readonly DestinationOverview[], now: number): string[] {
  const { colors } = cli.terminal
  const paint: Record<Health, (text: string) => string> = {
    HEALTHY: colors.green,
    INITIALIZING: colors.cyan,
    WARNING: colors.yellow,
    ERROR: colors.red,
    PAUSED: colors.dim,
  }
  return [
    ...formatTable(
      ['DESTINATION', 'HEALTH', 'MODE', 'SCHEDULE', 'LAG', 'BEHIND', 'LAST RUN', 'NEXT'].map((title) =>
        colors.bold(title),
      ),
      overviews.map((overview) => {
        const { name, plan, status, health, lagMs, behind } = overview
        return [
          name,
          paint[health](health),
          plan?.mode ?? status?.mode ?? '-',
          plan === null ? 'not declared' : describeSchedule(plan.schedule),
          lagMs === null ? '-' : formatDuration(lagMs),
          behind === null ? '-' : formatNumber(behind),
          describeLastRun(overview, now),
          describeNext(overview, now),
        ]
      }),
    ),
    ...overviews.flatMap((overview) => formatFailures(cli, overview, now)),
  ]
}

function describeLastRun({ status, databases }: DestinationOverview, now: number): string {
  if (status?.startedAt == null) return 'never ran'
  const loading = databases.filter(({ state }) => state === 'loading').map(({ database }) => database)
  if (status.endedAt === null)
    return `${loading.length > 0 ? `loading ${loading.join(', ')}` : 'running'} for ${formatDuration(now - status.startedAt)}`
  const applied = databases.reduce((sum, one) => sum + (one.state === 'new' ? 0 : one.changes), 0)
  const result = status.error === null ? `${formatNumber(applied)} changes applied` : status.error.code
  return `${result}, ${formatAgo(status.endedAt, now)}`
}

function describeNext({ due, status }: DestinationOverview, now: number): string {
  if (status?.heldBy != null) return 'now'
  if (due === null) return '-'
  if (due.kind === 'never') return due.why === 'current' ? 'with the next change' : due.why
  const when = due.at <= now ? 'due' : formatAgo(due.at, now)
  return due.why === 'retry' || due.why === 'trigger' ? `${when} (${due.why})` : when
}

function formatFailures(cli: Cli, { name, status, databases }: DestinationOverview, now: number): string[] {
  const { colors } = cli.terminal
  const failed = databases.flatMap((one) => (one.state === 'new' || one.failure == null ? [] : [one.failure]))
  if (failed.length === 0 && status?.error == null) return []
  const errors = failed.length > 0 ? failed : [{ ...status?.error, at: status?.endedAt ?? now }]
  return errors.flatMap(({ code, message, at }) =>
    code === undefined
      ? []
      : [
          `${colors.red('✗')} ${name}: ${formatAgo(at, now)}: ${colors.bold(code)} ${toPrintable(message ?? '')}`,
          `  ${addTargetFlags(adviceFor(code).replaceAll('<name>', name), cli.targetFlags)}`,
        ],
  )
}
