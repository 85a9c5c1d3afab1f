import type { Webhook } from '../contract/index.ts'
import { redactUrl } from './redact-url.ts'

/** The effect of an edit, the first change it applies to, and its limits. */
export interface EditPlan {
  readonly changes: ReadonlyArray<{
    readonly what: 'url' | 'databases' | 'actions' | 'allow'
    readonly from: string
    readonly to: string
  }>
  /** The first sequence to which the new settings apply. */
  readonly from: number
  readonly notes: readonly string[]
}

/** An edit applies from the webhook's current sequence: earlier changes are not evaluated again. */
export function planEdit(before: Webhook, after: Webhook, headSequence: number): EditPlan {
  const changes = (['url', 'databases', 'actions', 'allow'] as const)
    .map((what) => ({ what, from: describeSetting(before, what), to: describeSetting(after, what) }))
    .filter(({ what, from, to }) => from !== to || (what === 'url' && before.url !== after.url))
  const from = before.sequence + 1
  if (changes.length === 0) return { changes, from, notes: [] }
  const behind = headSequence - before.sequence
  const undelivered = before.waiting + before.failed
  const hasNewUrl = before.url !== after.url
  return {
    changes,
    from,
    notes: [
      `The new settings apply from sequence ${from}. Earlier changes are not sent again.`,
      ...(behind > 0
        ? [`The new settings also apply to ${behind} pending log ${behind === 1 ? 'entry' : 'entries'}.`]
        : []),
      ...(widensFilter(before, after)
        ? [
            `Earlier changes that did not match the old filter are not sent. Run \`tidemark webhooks replay ${before.id} --since <time>\` to send everything since then with the new settings.`,
          ]
        : []),
      ...(undelivered > 0
        ? [
            `Failed deliveries (${undelivered}) are retried even if they no longer match the filter${hasNewUrl ? ', at the new URL' : ''}.`,
          ]
        : []),
      ...(hasNewUrl ? ['The secret does not change.'] : []),
      ...(before.disabledReason !== null
        ? [`The webhook stays disabled. Run \`tidemark webhooks resume ${before.id}\` to enable it.`]
        : []),
    ],
  }
}

function describeSetting(webhook: Webhook, what: EditPlan['changes'][number]['what']): string {
  if (what === 'url') return redactUrl(webhook.url)
  return webhook[what]?.join(', ') ?? 'all'
}

/** Whether the new filter matches changes that the old one did not. */
function widensFilter(before: Webhook, after: Webhook): boolean {
  return widens(before.databases, after.databases) || widens(before.actions, after.actions)
}

function widens(before: readonly string[] | null, after: readonly string[] | null): boolean {
  if (before === null) return false
  return after === null || after.some((value) => !before.includes(value))
}
