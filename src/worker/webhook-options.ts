import { SyncError } from '../contract/index.ts'
import type { ExecuteWebhook, WebhookEvent } from '../webhooks/inbound-webhooks.ts'
import type { WebhookVerifier } from '../webhooks/verify/verify.ts'
import { didYouMean } from '../config/did-you-mean.ts'
import { describeValue } from '../config/names.ts'
import type { DatabaseHandle } from './worker.ts'

export interface WebhookOptions {
  /** Where a change without `database` goes. One that only triggers syncs needs none. */
  database?: DatabaseHandle | string
  /** Further databases a change may name. */
  databases?: readonly (DatabaseHandle | string)[]
  /** Whether a message is the vendor's: stripeSignature, githubSignature, hubspotSignature, standardSignature, or one of your own. */
  verify: WebhookVerifier
  /** Whether a message is of interest: one that is not is answered at once, and nothing is kept of it. */
  wants?: (event: WebhookEvent) => boolean
  /** True: answered with 202 as soon as the message is kept in the store, and acted on after; for a vendor that waits only for a moment. What fails is tried again for three days. */
  later?: boolean
  /** Called for every message once. */
  execute: ExecuteWebhook
}

const WEBHOOK_OPTION_NAMES = Object.keys({ database: 0, databases: 0, verify: 0, wants: 0, later: 0, execute: 0 } satisfies Record<keyof WebhookOptions, 0>)

export function checkWebhookOptions(name: string, options: WebhookOptions): void {
  const fail = (what: string, hint = ''): never => {
    throw new SyncError('WEBHOOK_INVALID', `Webhook "${name}": ${what}.${hint}`)
  }
  if (typeof options !== 'object' || options === null) fail(`the options are ${describeValue(options)}`)
  const unknown = Object.keys(options).find((option) => !WEBHOOK_OPTION_NAMES.includes(option))
  if (unknown !== undefined) fail(`there is no option ${describeValue(unknown)}`, didYouMean(unknown, WEBHOOK_OPTION_NAMES))
  // Never without: an address that anybody may post to would let anybody write.
  for (const option of ['verify', 'execute'] as const) if (typeof options[option] !== 'function') fail(`${option} is ${describeValue(options[option])}, not a function`)
  if (options.wants !== undefined && typeof options.wants !== 'function') fail(`wants is ${describeValue(options.wants)}, not a function`)
  if (options.later !== undefined && typeof options.later !== 'boolean') fail(`later is ${describeValue(options.later)}, neither true nor false`)
  if (options.database === undefined && options.databases !== undefined) fail('it names databases, but not which one is its own')
}
