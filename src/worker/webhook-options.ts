import { SyncError } from '../contract/index.ts'
import type { ExecuteWebhook, WebhookEvent } from '../webhooks/inbound-webhooks.ts'
import type { WebhookVerifier } from '../webhooks/verify/verify.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { describeValue } from '../config/names.ts'
import type { DatabaseHandle } from './worker.ts'

/** Options of `worker.webhook`. */
export interface WebhookOptions {
  /** The database of changes without `database`. Not needed by a webhook that only triggers syncs. */
  database?: DatabaseHandle | string
  /** Additional databases that a change may name. */
  databases?: readonly (DatabaseHandle | string)[]
  /** Verifies the signature: stripeSignature, githubSignature, hubspotSignature, standardSignature, or your own function. */
  verify: WebhookVerifier
  /** Whether to process a message. Other messages are acknowledged and not stored. */
  wants?: (event: WebhookEvent) => boolean
  /** True: respond with 202 once the message is stored and process it later, for vendors with short timeouts. Failures are retried for three days. */
  later?: boolean
  /** Called once per message. */
  execute: ExecuteWebhook
}

const WEBHOOK_OPTION_NAMES = Object.keys({
  database: 0,
  databases: 0,
  verify: 0,
  wants: 0,
  later: 0,
  execute: 0,
} satisfies Record<keyof WebhookOptions, 0>)

export function checkWebhookOptions(name: string, options: WebhookOptions): void {
  const fail = (what: string, hint = ''): never => {
    throw new SyncError('WEBHOOK_INVALID', `Webhook "${name}": ${what}.${hint}`)
  }
  if (typeof options !== 'object' || options === null) fail(`the options are ${describeValue(options)}`)
  const unknown = Object.keys(options).find((option) => !WEBHOOK_OPTION_NAMES.includes(option))
  if (unknown !== undefined) fail(`unknown option ${describeValue(unknown)}`, didYouMean(unknown, WEBHOOK_OPTION_NAMES))
  // `verify` is mandatory: an unverified endpoint would let any caller write.
  for (const option of ['verify', 'execute'] as const)
    if (typeof options[option] !== 'function') fail(`${option} is ${describeValue(options[option])}, not a function`)
  if (options.wants !== undefined && typeof options.wants !== 'function')
    fail(`wants is ${describeValue(options.wants)}, not a function`)
  if (options.later !== undefined && typeof options.later !== 'boolean')
    fail(`later is ${describeValue(options.later)}, not a boolean`)
  if (options.database === undefined && options.databases !== undefined) fail('`databases` requires `database`')
}
