import type { Webhook } from '../contract/index.ts'
import { redactUrl } from './redact-url.ts'

/** The effect of an edit, the first change it applies to, and its limits. */
export interface EditPlan {
  readonly changes: ReadonlyArray<{ readonly what: 'url' | 'databases' | 'actions' | 'allow'; readonly from: string; readonly to: string }>
  /** The first sequence to which the new settings apply. */
  readonly from: number
  readonly notes: readonly string[]
}

/** An edit applies from the webhook's current sequence: earlier changes are not evaluated again. */
export function planEdit(before: Webhook, after: Webhook, newest: number): EditPlan {
  const changes = (['url', 'databases', 'actions', 'allow'] as const)
    .map((what) => ({ what, from: describeSetting(before, what), to: describeSetting(after, what) }))
    .filter(({ what, from, to }) => from !== to || (what === 'url' && before.url !== after.url))
  const from = before.sequence + 1
  if (changes.length === 0) return { changes, from, notes: [] }
  const behind = newest - before.sequence
  const kept = before.waiting + before.dead
  const isElsewhere = before.url !== after.url
  return {
    changes, from,
    notes: [
      `From sequence ${from} on it is sent what fits the new settings; what was sent before stays sent, and nothing is sent again.`,
      ...(behind > 0 ? [`Of the changes that have landed, it has ${behind} still before it: they are judged by the new settings as well.`] : []),
      ...(widensFilter(before, after) ? [`What landed earlier and was not wanted then is not sent. \`tidemark webhooks replay ${before.id} --since <time>\` sends everything of that time once more, by the new settings.`] : []),
      ...(kept > 0 ? [`What was tried in vain (${kept}) stays, fitting or not${isElsewhere ? ', and goes to the new URL' : ''}.`] : []),
      ...(isElsewhere ? ['Its secret stays the same.'] : []),
      ...(before.disabledReason !== null ? [`It stays disabled. \`tidemark webhooks resume ${before.id}\` lets it go on.`] : []),
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
  return after === null || after.some((word) => !before.includes(word))
}
