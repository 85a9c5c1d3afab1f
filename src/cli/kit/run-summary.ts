import type { CycleResult } from '../../engine/cycle-options.ts'
import type { Cli } from '../cli.ts'
import { totalRows, formatNumber } from './counts.ts'
import { adviceFor } from './report-error.ts'
import { addTargetFlags } from './target-flags.ts'

/** The last lines of a run: how many syncs succeeded, and for every cause of a failure the syncs and the next step. */
export function formatRunSummary(
  { terminal, targetFlags }: Cli,
  results: readonly CycleResult[],
  planned: number,
): string[] {
  const { colors } = terminal
  const failed = results.filter(({ error }) => error !== null)
  const notRun = Math.max(0, planned - results.length)
  const rows = results.reduce((sum, { counts }) => sum + totalRows(counts), 0)
  const parts = [
    `${formatNumber(results.length - failed.length)} ok`,
    ...(failed.length > 0 ? [colors.red(`${formatNumber(failed.length)} failed`)] : []),
    ...(notRun > 0 ? [`${formatNumber(notRun)} not run`] : []),
  ]
  const codes = new Set(failed.flatMap(({ error }) => (error === null ? [] : [error.code])))
  return [
    '',
    `${colors.bold(`${formatNumber(planned)} syncs`)}: ${parts.join(', ')}. ${formatNumber(rows)} ${rows === 1 ? 'row' : 'rows'}.`,
    ...[...codes].flatMap((code) => {
      const names = failed.filter(({ error }) => error?.code === code).map(({ sync }) => sync)
      const advice = addTargetFlags(adviceFor(code, names.length === 1 ? names[0] : undefined), targetFlags)
      return [`  ${colors.red(code)}: ${listNames(names)}`, `    ${advice}`]
    }),
  ]
}

function listNames(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_MAX).join(', ')
  return names.length > NAMES_MAX ? `${shown} and ${formatNumber(names.length - NAMES_MAX)} more` : shown
}

const NAMES_MAX = 5
