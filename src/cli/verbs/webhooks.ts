import { Command, InvalidArgumentError } from 'commander'
import {
  SyncError,
  type Store,
  type Webhook,
  type WebhookAction,
  type WebhookAllowance,
  type WebhookEdit,
} from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { checkWebhookUrl } from '../../webhooks/check-url.ts'
import {
  ACTIONS,
  addWebhook,
  ALLOWANCES,
  toDeliveryDocument,
  editWebhook,
  findWebhook,
  pauseWebhook,
  removeWebhook,
  replayWebhook,
  resumeWebhook,
  rotateWebhook,
  testWebhook,
  toWebhookDocument,
  type WebhookActor,
} from '../../webhooks/manage-webhooks.ts'
import { redactUrl } from '../../webhooks/redact-url.ts'
import { createSender } from '../../webhooks/send.ts'
import { actorName } from '../kit/actor.ts'
import { parseCountOrZero, parseTime } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { isoTime } from '../kit/json-document.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { formatTable } from '../kit/table.ts'
import { targetDocument, withStoreFlags, type Target, type TargetFlags } from '../kit/target.ts'
import { withExistingStore, withStore } from '../kit/with-store.ts'

interface AddFlags extends TargetFlags {
  readonly databases?: readonly string[]
  readonly actions?: readonly WebhookAction[]
  readonly allow: readonly WebhookAllowance[]
  readonly all?: boolean
}

interface EditFlags extends TargetFlags {
  readonly url?: string
  readonly databases?: readonly string[] | 'all'
  readonly actions?: readonly WebhookAction[] | 'all'
  readonly allow?: readonly WebhookAllowance[]
  readonly dryRun?: boolean
}

interface ReplayFlags extends TargetFlags {
  readonly since?: number
  readonly all?: boolean
}

const HOUR_MS = 3_600_000

type WebhookVerb =
  | 'add'
  | 'list'
  | 'edit'
  | 'test'
  | 'pause'
  | 'resume'
  | 'replay'
  | 'failed'
  | 'dead'
  | 'rotate'
  | 'remove'

export function webhooksVerbs(): Record<WebhookVerb, Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  const id = ['<id>', 'the id of the webhook, from `tidemark webhooks list`'] as const
  // `dead` is the name of the command up to 0.2.
  const failed = (name: 'failed' | 'dead'): Command =>
    verb(name)
      .summary('list failed deliveries')
      .description('Lists the deliveries that failed on every attempt.')
      .argument(...id)
  return {
    add: verb('add')
      .summary('add a webhook')
      .description(
        'Adds a webhook: new changes are sent to a URL, signed as in Standard Webhooks. The secret is shown once. `tidemark start` delivers. --actions takes created, updated and deleted, and the events destination.failing, destination.recovered and destination.loading. --allow permits http, private (non-public addresses) and port (other than 80 and 443).',
      )
      .argument('<url>', 'the public https URL that receives changes')
      .option('--databases <list>', 'send only these databases (default: all)', parseNames)
      .option('--actions <list>', 'send only these changes or events (default: all changes)', parseNamesOf(ACTIONS))
      .option('--allow <list>', 'allow a restricted URL: http, private, port', parseNamesOf(ALLOWANCES), [])
      .option('--all', 'start with the whole change log, not with new changes'),
    list: verb('list')
      .summary('list the webhooks and their progress')
      .description('Lists the webhooks of this tenant with their progress and the result of the last delivery.'),
    edit: verb('edit')
      .summary('change the filter or the URL of a webhook')
      .description(
        'Changes the filter or the URL of a webhook and explains the effect. Edits apply from the current position of the webhook: earlier changes that the old filter excluded are sent only by a replay.',
      )
      .argument(...id)
      .option('--databases <list>', 'send only these databases, or all', parseOrAll(parseNames))
      .option(
        '--actions <list>',
        'send only these changes or events; or all changes: all',
        parseOrAll(parseNamesOf(ACTIONS)),
      )
      .option('--url <url>', 'the public https URL that receives changes')
      .option('--allow <list>', 'allow a restricted URL: http, private, port', parseNamesOf(ALLOWANCES))
      .option('--dry-run', 'show the effect without changing anything'),
    test: verb('test')
      .summary('send a test message')
      .description('Sends a test message to a webhook and shows the status and the start of the response.')
      .argument(...id),
    pause: verb('pause')
      .summary('pause a webhook')
      .description('Pauses a webhook. Changes made in the meantime are sent when it is resumed.')
      .argument(...id),
    resume: verb('resume')
      .summary('resume a paused or disabled webhook')
      .description('Resumes a webhook where it was paused or disabled. Failed deliveries are not retried; see replay.')
      .argument(...id),
    replay: verb('replay')
      .summary('retry failed deliveries or resend changes')
      .description(
        'Enables a webhook and retries its pending and failed deliveries. With --since or --all, changes are sent again with the same ids.',
      )
      .argument(...id)
      .option('--since <time>', 'resend changes since a time (2026-01-31T12:00:00Z)', parseTime)
      .option('--all', 'resend the whole change log'),
    failed: failed('failed'),
    dead: failed('dead'),
    rotate: verb('rotate')
      .summary('rotate the secret of a webhook')
      .description(
        'Creates a new secret for a webhook. Messages carry the signatures of both secrets until the overlap ends.',
      )
      .argument(...id)
      .option('--overlap <hours>', 'hours that both secrets sign', parseCountOrZero, 24),
    remove: verb('remove')
      .summary('remove a webhook')
      .description('Removes a webhook and its pending and failed deliveries.')
      .argument(...id)
      .option('--yes', 'remove the webhook instead of only showing it'),
  }
}

export const webhooksAdd: VerbAction<[string, AddFlags]> = async (
  cli,
  url,
  { databases = null, actions = null, allow, all = false, ...flags },
) => {
  checkWebhookUrl(url, allow)
  await withStore(cli, flags, async (target, store) => {
    const { webhook, secret } = await addWebhook(store, { url, databases, actions, allow, all }, currentActor())
    await printWebhook(cli, target, store, webhook, {
      secret,
      message: `Added webhook ${webhook.id}. It receives ${all ? 'the whole change log' : 'new changes'}. \`tidemark start\` delivers.`,
    })
  })
}

export const webhooksList: VerbAction<[TargetFlags]> = async (cli, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const webhooks = (await store?.webhooks()) ?? []
    const headSequence = (await store?.headSequence()) ?? 0
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        webhooks: webhooks.map((webhook) => toWebhookDocument(webhook, headSequence)),
      })
    if (webhooks.length === 0) return cli.terminal.print('No webhooks. Add one with `tidemark webhooks add <url>`.')
    cli.terminal.print(
      ...formatTable(
        ['ID', 'URL', 'FILTER', 'BEHIND', 'PENDING', 'FAILED', 'LAST', 'STATUS'],
        webhooks.map((webhook) => [
          webhook.id,
          toPrintable(redactUrl(webhook.url)),
          describeFilter(webhook),
          String(headSequence - webhook.sequence),
          String(webhook.waiting),
          String(webhook.failed),
          webhook.lastStatus === null ? (webhook.lastResponse ?? '–') : String(webhook.lastStatus),
          webhook.disabledReason === null ? 'enabled' : `disabled: ${webhook.disabledReason}`,
        ]),
      ),
    )
  })
}

export const webhooksEdit: VerbAction<[string, EditFlags]> = async (
  cli,
  id,
  { url, databases, actions, allow, dryRun = false, ...flags },
) => {
  const edit: WebhookEdit = {
    ...(url !== undefined && { url }),
    ...(databases !== undefined && { databases: toFilter(databases) }),
    ...(actions !== undefined && { actions: toFilter(actions) }),
    ...(allow !== undefined && { allow }),
  }
  if (Object.keys(edit).length === 0)
    throw new SyncError('ARGUMENT_INVALID', 'No change was requested. Add --databases, --actions, --url or --allow.')
  await withStore(cli, flags, async (target, store) => {
    const { webhook, plan } = await editWebhook(store, id, edit, { ...currentActor(), isDone: !dryRun })
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        changed: !dryRun && plan.changes.length > 0,
        plan,
        webhook: toWebhookDocument(webhook, await store.headSequence()),
      })
    if (plan.changes.length === 0) return cli.terminal.remark(`Webhook ${id} already has these settings.`)
    cli.terminal.print(
      ...formatTable(
        ['', 'WAS', dryRun ? 'WOULD BE' : 'IS'],
        plan.changes.map(({ what, from, to }) => [what, toPrintable(from), toPrintable(to)]),
      ),
    )
    cli.terminal.remark(
      ...plan.notes,
      ...(dryRun ? [cli.terminal.colors.dim('Nothing was changed. Leave out --dry-run to apply it.')] : []),
    )
  })
}

export const webhooksTest: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  let failed = false
  await withStore(cli, flags, async (target, store) => {
    const webhook = await findWebhook(store, id)
    const send = createSender()
    const { kind, messageId, status, response } = await testWebhook(webhook, send, systemClock.now())
    await send.close()
    failed = kind !== 'delivered'
    if (cli.terminal.json)
      cli.terminal.printDocument({
        ...targetDocument(target),
        webhook: id,
        messageId,
        delivered: !failed,
        status,
        response,
      })
    else
      cli.terminal.print(
        `${failed ? 'Not delivered' : 'Delivered'}${status === null ? '' : `, status ${status}`}${response === null ? '' : `: ${toPrintable(response)}`}`,
      )
  })
  return failed ? 1 : 0
}

export const webhooksPause: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    await printWebhook(cli, target, store, await pauseWebhook(store, id, currentActor()), {
      message: `Paused webhook ${id}. Resume it with \`tidemark webhooks resume ${id}\`.`,
    })
  })
}

export const webhooksResume: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  await withStore(cli, flags, async (target, store) => {
    await printWebhook(cli, target, store, await resumeWebhook(store, id, currentActor()), {
      message: `Resumed webhook ${id}.`,
    })
  })
}

export const webhooksReplay: VerbAction<[string, ReplayFlags]> = async (cli, id, { since, all, ...flags }) => {
  await withStore(cli, flags, async (target, store) => {
    const { webhook, after, revived } = await replayWebhook(store, id, { since, all }, currentActor())
    await printWebhook(cli, target, store, webhook, {
      message:
        after === null
          ? `Enabled webhook ${id}; retrying ${revived} failed deliveries.`
          : `Enabled webhook ${id}; resending every change after sequence ${after}.`,
    })
  })
}

export const webhooksFailed: VerbAction<[string, TargetFlags]> = async (cli, id, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    if (store !== null) await findWebhook(store, id)
    const failed = (await store?.deliveries({ webhook: id, failed: true, limit: 1_000 })) ?? []
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        webhook: id,
        failed: failed.map(toDeliveryDocument),
      })
    if (failed.length === 0) return cli.terminal.print('No failed deliveries.')
    cli.terminal.print(
      ...formatTable(
        ['MESSAGE', 'DATABASE', 'KEY', 'ATTEMPTS', 'SINCE', 'LAST RESPONSE'],
        failed.map((delivery) => [
          delivery.messageId,
          delivery.database,
          toPrintable(delivery.key),
          String(delivery.attempts),
          isoTime(delivery.firstAt) ?? '–',
          `${delivery.lastStatus ?? ''} ${toPrintable(delivery.lastResponse ?? '')}`.trim(),
        ]),
      ),
    )
    cli.terminal.remark(cli.terminal.colors.dim(`Retry them with \`tidemark webhooks replay ${id}\`.`))
  })
}

export const webhooksRotate: VerbAction<[string, TargetFlags & { readonly overlap: number }]> = async (
  cli,
  id,
  flags,
) => {
  await withStore(cli, flags, async (target, store) => {
    const actor = currentActor()
    const { webhook, secret } = await rotateWebhook(store, id, flags.overlap * HOUR_MS, actor)
    await printWebhook(cli, target, store, webhook, {
      secret,
      message: `The previous secret also signs until ${isoTime(actor.at + flags.overlap * HOUR_MS)}.`,
    })
  })
}

export const webhooksRemove: VerbAction<[string, TargetFlags & { readonly yes?: boolean }]> = async (
  cli,
  id,
  flags,
) => {
  await withStore(cli, flags, async (target, store) => {
    const webhook = await findWebhook(store, id)
    const document = toWebhookDocument(webhook, await store.headSequence())
    if (flags.yes !== true)
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `Nothing was changed. Add --yes to remove webhook ${id} (tenant ${target.tenant}, ${webhook.waiting + webhook.failed} stored messages).`,
        { webhook: document },
      )
    await removeWebhook(store, id, currentActor())
    if (cli.terminal.json) cli.terminal.printDocument({ ...targetDocument(target), removed: document })
    else cli.terminal.remark(`Removed webhook ${id}.`)
  })
}

function currentActor(): WebhookActor {
  return { actor: actorName(), at: systemClock.now() }
}

async function printWebhook(
  { terminal }: Cli,
  target: Target,
  store: Store,
  webhook: Webhook,
  { secret, message }: { secret?: string; message: string },
): Promise<void> {
  if (terminal.json)
    return terminal.printDocument({
      ...targetDocument(target),
      webhook: { ...toWebhookDocument(webhook, await store.headSequence()), ...(secret !== undefined && { secret }) },
    })
  if (secret !== undefined) terminal.print(secret)
  terminal.remark(
    message,
    ...(secret === undefined ? [] : [terminal.colors.dim('Save the secret now: it is not shown again.')]),
  )
}

function describeFilter({ databases, actions }: Webhook): string {
  return [databases?.join(',') ?? 'all', ...(actions === null ? [] : [actions.join(',')])].join(' ')
}

/** `all` removes the filter. It is converted to null later, because commander treats null as an option without a value. */
function parseOrAll<Names>(parse: (text: string) => Names): (text: string) => Names | 'all' {
  return (text) => (text === 'all' ? text : parse(text))
}

function toFilter<Names>(names: Names | 'all'): Names | null {
  return names === 'all' ? null : names
}

function parseNames(text: string): string[] {
  const names = [
    ...new Set(
      text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
    ),
  ]
  if (names.length === 0) throw new InvalidArgumentError('The list is empty.')
  return names
}

function parseNamesOf<Name extends string>(allowed: readonly Name[]): (text: string) => Name[] {
  const isAllowed = (name: string): name is Name => allowed.some((one) => one === name)
  return (text) => {
    const names = parseNames(text)
    const wrong = names.find((name) => !isAllowed(name))
    if (wrong !== undefined)
      throw new InvalidArgumentError(`${JSON.stringify(wrong)} is not one of ${allowed.join(', ')}.`)
    return names.filter(isAllowed)
  }
}
