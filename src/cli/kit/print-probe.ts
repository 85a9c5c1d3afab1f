import type { Contradiction, Evidence, Fact } from '../../probe/fact.ts'
import type { ProbeStep } from '../../probe/observe.ts'
import type { Recommendation } from '../../probe/recommend.ts'
import type { ListReport } from '../../probe/probe-list.ts'
import type { SyncReport } from '../../probe/probe-sync.ts'
import type { Cli } from '../cli.ts'
import { RawJson } from './json-document.ts'
import { toPrintable } from './printable.ts'
import { formatTable } from './table.ts'

/** Prints the requests that a probe can send. */
export function printProbePlan({ terminal }: Cli, steps: readonly ProbeStep[], budget: number): void {
  if (terminal.json) return
  const total = steps.reduce((sum, { requestsMax }) => sum + (requestsMax ?? budget), 0)
  terminal.print(
    ...formatTable(
      ['REQUESTS', 'PURPOSE', 'EXAMPLE'],
      steps.map(({ purpose, requestsMax, example }) => [
        requestsMax === null ? '-' : `≤ ${requestsMax}`,
        purpose,
        toPrintable(example, 160),
      ]),
    ),
  )
  terminal.print('', `At most ${Math.min(total, budget)} requests, one after another; none of them writes.`, '')
}

/** A step in JSON. */
export function stepDocument({ purpose, requestsMax, example }: ProbeStep): object {
  return { purpose, requestsMax, example }
}

/** Prints the facts, the contradictions and the recommendation of a probe. */
export function printProbe(
  { terminal }: Cli,
  report: ListReport | SyncReport,
  contradictions: readonly Contradiction[],
  manifest: string | null,
): void {
  const { colors } = terminal
  for (const fact of report.facts) {
    const mark = fact.isWarning
      ? colors.yellow('!')
      : fact.certainty === 'untestable'
        ? colors.dim('?')
        : colors.green('✓')
    terminal.print(`${mark} ${colors.bold(fact.topic)}  ${toPrintable(fact.text, 300)}`)
    terminal.print(colors.dim(`    ${describeCertainty(fact)}${describeEvidence(fact.evidence)}`))
  }
  for (const { declared, text, evidence } of contradictions)
    terminal.print(
      `${colors.red('✗')} ${colors.bold(`declared ${declared}`)}  ${toPrintable(text, 300)}`,
      colors.dim(`    contradicted${describeEvidence(evidence)}`),
    )
  terminal.print('', `${report.requests.length} requests were sent.`)
  if (report.endedBy !== null)
    terminal.print(colors.yellow(`The probe ended early: ${toPrintable(report.endedBy, 300)}.`))
  if (!('recommendation' in report)) return
  const { advice, settings, cautions, answers } = report.recommendation
  terminal.print(
    '',
    `${colors.bold('strategy')}  ${advice.mode}: ${advice.backfill.strategy}${advice.delta === null ? '' : `, then ${advice.delta.strategy}`}`,
    `${colors.bold('settings')}  lag ${settings.lagMs / 1_000} s, overlap ${settings.overlapMs / 1_000} s${settings.pageSizeMax === null ? '' : `, page size ${settings.pageSizeMax}`}${settings.deletedField === null ? '' : `, deleted rows by ${settings.deletedField}`}`,
    `${colors.bold('answers')}   ${Object.entries(answers)
      .map(([name, value]) => `${name}=${String(value)}`)
      .join(' ')}`,
    ...[...cautions, ...advice.cautions].map((caution) => `  ${colors.yellow('!')} ${toPrintable(caution, 300)}`),
  )
  if (manifest !== null) terminal.print('', manifest.trimEnd())
}

function describeCertainty({ certainty, reason }: Fact): string {
  if (certainty === 'untestable') return `not testable because ${toPrintable(reason ?? 'it was not asked', 200)}`
  return certainty === 'shown' ? 'shown' : 'consistent with what was seen'
}

function describeEvidence({ requests, rows }: Evidence): string {
  const asked = requests.length === 0 ? '' : `; request${requests.length === 1 ? '' : 's'} ${formatNumbers(requests)}`
  const shown = rows.map(({ key, time }) => `${toPrintable(key, 60)}${time === null ? '' : ` at ${time}`}`)
  return `${asked}${shown.length === 0 ? '' : `; ${shown.join(', ')}`}`
}

function formatNumbers(numbers: readonly number[]): string {
  return numbers.length > 6 ? `${numbers[0]} to ${numbers.at(-1)}` : numbers.join(', ')
}

/** The report of a probe in JSON. */
export function probeDocument(report: ListReport | SyncReport, contradictions: readonly Contradiction[]): object {
  return {
    facts: report.facts.map(({ topic, value, text, certainty, reason, isWarning, evidence }) => ({
      topic,
      value,
      text,
      certainty,
      reason: reason ?? null,
      isWarning: isWarning === true,
      evidence,
    })),
    contradictions,
    requests: report.requests.map(({ number, purpose, method, target, status }) => ({
      number,
      purpose,
      method,
      target,
      status,
    })),
    endedBy: report.endedBy,
    ...('recommendation' in report && { recommendation: recommendationDocument(report.recommendation) }),
  }
}

function recommendationDocument({ answers, advice, settings, cautions }: Recommendation): object {
  return {
    answers: new RawJson(answers),
    mode: advice.mode,
    backfill: advice.backfill.strategy,
    delta: advice.delta?.strategy ?? null,
    deletes: advice.deletes,
    schedule: advice.schedule,
    settings,
    reasons: advice.reasons,
    cautions: [...cautions, ...advice.cautions],
  }
}
