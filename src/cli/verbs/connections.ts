import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { Command, InvalidArgumentError, Option } from 'commander'
import { SyncError, type Connection, type ConnectionCredentials } from '../../contract/index.ts'
import {
  buildCredentials,
  CREDENTIAL_FIELDS,
  defaultKind,
  type CredentialKind,
} from '../../connections/build-credentials.ts'
import { toConnectionDocument } from '../../connections/connection-document.ts'
import {
  addConnection,
  createConnectionRuntime,
  disableConnection,
  editConnection,
  enableConnection,
  getConnection,
  removeConnection,
  revokeConnection,
  testConnection,
  type ConnectionActor,
} from '../../connections/manage-connections.ts'
import { systemClock } from '../../platform/clock.ts'
import { isSecretReference, readSecretReference } from '../../platform/secret-references.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import type { Cli, VerbAction } from '../cli.ts'
import { actorName } from '../kit/actor.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { readStandardInput } from '../kit/state-argument.ts'
import { formatTable } from '../kit/table.ts'
import { targetDocument, withStoreFlags, type Target, type TargetFlags } from '../kit/target.ts'
import { withExistingStore, withStore } from '../kit/with-store.ts'

interface CredentialFlags extends TargetFlags {
  readonly kind?: CredentialKind
  readonly secret: readonly string[]
  readonly stdin?: boolean
}

interface AddFlags extends CredentialFlags {
  readonly name?: string
  readonly setting: Readonly<Record<string, string>>
  readonly scopes?: readonly string[]
  readonly test: boolean
}

interface ReauthorizeFlags extends CredentialFlags {
  readonly allowAccountChange?: boolean
  readonly test: boolean
}

interface ReasonFlags extends TargetFlags {
  readonly reason?: string
  readonly yes?: boolean
}

type ConnectionVerb = 'add' | 'list' | 'show' | 'test' | 'reauthorize' | 'disable' | 'enable' | 'revoke' | 'remove'

export function connectionsVerbs(): Record<ConnectionVerb, Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  const named = (name: string): Command => verb(name).argument('<name>', 'the name of the connection')
  const withCredentials = (command: Command): Command =>
    command
      .addOption(
        new Option('--kind <kind>', 'kind of credentials (default: that of the provider)').choices(
          Object.keys(CREDENTIAL_FIELDS),
        ),
      )
      .option('--secret <name=reference>', 'secret as env:NAME, file:/path or exec:command', collect, [])
      .option('--stdin', 'read the secrets as a JSON object from standard input')
      .option('--no-test', 'do not ask the vendor whose account it is')
  const withReason = (command: Command): Command => command.option('--reason <text>', 'the reason, for the audit log')
  return {
    add: withCredentials(
      verb('add')
        .summary('connect an account of a tenant')
        .description(
          'Stores the credentials of an account, sealed, and asks the vendor whose account it is. Without --secret and --stdin, the secrets are asked for without echo. Every sync that names the connection then runs for the tenant.',
        )
        .argument('<provider>', 'the provider, such as stripe')
        .option('--name <name>', 'the name of the connection (default: the provider)')
        .option('--setting <name=value>', 'a setting such as instance_url; repeatable', parsePair, {})
        .option('--scopes <list>', 'the scopes that the credentials have', parseList),
    ),
    list: verb('list')
      .summary('list the connections of a tenant')
      .description('Lists the connections of this tenant with their status. Credentials are never shown.'),
    show: named('show').summary('show one connection').description('Shows one connection, without its credentials.'),
    test: named('test')
      .summary('ask the vendor whose account it is')
      .description('Uses the credentials of a connection once, and shows the account that the vendor states.'),
    reauthorize: withCredentials(
      named('reauthorize')
        .summary('replace the credentials of a connection')
        .description(
          'Replaces the credentials and makes the connection active. Its syncs continue where they stopped, without a restart.',
        )
        .option('--allow-account-change', 'accept credentials of another account'),
    ),
    disable: withReason(
      named('disable')
        .summary('stop the syncs of a connection')
        .description('Stops every sync that uses the connection, in all processes. Credentials and rows are kept.'),
    ),
    enable: withReason(
      named('enable').summary('start a disabled connection').description('Starts the syncs of a disabled connection.'),
    ),
    revoke: withReason(
      named('revoke')
        .summary('delete the credentials of a connection')
        .description('Deletes the credentials in the store. The connection and the rows stay.')
        .option('--yes', 'delete the credentials instead of only showing the plan'),
    ),
    remove: withReason(
      named('remove')
        .summary('remove a connection')
        .description('Removes a connection with its credentials. Its syncs stop. Their rows and states stay.')
        .option('--yes', 'remove the connection instead of only showing the plan'),
    ),
  }
}

export const connectionsAdd: VerbAction<[string, AddFlags]> = async (
  cli,
  provider,
  { name = provider, kind = defaultKind(provider), secret, stdin, setting, scopes = [], test, ...flags },
) => {
  await withStore(cli, flags, async (target, store) => {
    const credentials = await readCredentials(cli, target, provider, { kind, secret, ...(stdin === true && { stdin }) })
    const connection = await addConnection(store, { name, provider, credentials, settings: setting, scopes }, by())
    const tested = test ? await testConnection(store, name, await openRuntime(cli, target)) : null
    const current = await getConnection(store, name)
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        connection: toConnectionDocument(current),
        test: tested,
      })
    cli.terminal.remark(`Added connection ${connection.name}.`)
    printTest(cli, tested)
    printConnection(cli, current)
  })
}

export const connectionsList: VerbAction<[TargetFlags]> = async (cli, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const connections = (await store?.connections()) ?? []
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        connections: connections.map(toConnectionDocument),
      })
    if (connections.length === 0)
      return cli.terminal.print('No connections. Add one with `tidemark connections add <provider>`.')
    cli.terminal.print(
      ...formatTable(
        ['NAME', 'PROVIDER', 'ACCOUNT', 'STATUS', 'REASON'],
        connections.map(({ name, provider, account, status, statusReason }) =>
          [name, provider, account?.label ?? '–', status, statusReason ?? ''].map((cell) => toPrintable(cell)),
        ),
      ),
    )
  })
}

export const connectionsShow: VerbAction<[string, TargetFlags]> = async (cli, name, flags) => {
  await withStore(cli, flags, async (target, store) => printResult(cli, target, await getConnection(store, name), null))
}

export const connectionsTest: VerbAction<[string, TargetFlags]> = async (cli, name, flags) => {
  await withStore(cli, flags, async (target, store) => {
    const tested = await testConnection(store, name, await openRuntime(cli, target), cli.listenForStop())
    if (!tested.ok) throw new SyncError(tested.code, tested.message)
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), name, test: tested })
    printTest(cli, tested)
  })
}

export const connectionsReauthorize: VerbAction<[string, ReauthorizeFlags]> = async (
  cli,
  name,
  { kind, secret, stdin, allowAccountChange = false, test, ...flags },
) => {
  await withStore(cli, flags, async (target, store) => {
    const { provider } = await getConnection(store, name)
    const credentials = await readCredentials(cli, target, provider, {
      kind: kind ?? defaultKind(provider),
      secret,
      ...(stdin === true && { stdin }),
    })
    await editConnection(store, name, { credentials, allowAccountChange }, by())
    const tested = test ? await testConnection(store, name, await openRuntime(cli, target)) : null
    if (!cli.terminal.json) printTest(cli, tested)
    printResult(cli, target, await getConnection(store, name), `Replaced the credentials of ${name}.`)
  })
}

export const connectionsDisable: VerbAction<[string, ReasonFlags]> = async (cli, name, { reason, ...flags }) => {
  await withStore(cli, flags, async (target, store) =>
    printResult(cli, target, await disableConnection(store, name, by(reason)), `Disabled ${name}.`),
  )
}

export const connectionsEnable: VerbAction<[string, ReasonFlags]> = async (cli, name, { reason, ...flags }) => {
  await withStore(cli, flags, async (target, store) =>
    printResult(cli, target, await enableConnection(store, name, by(reason)), `Enabled ${name}.`),
  )
}

export const connectionsRevoke: VerbAction<[string, ReasonFlags]> = async (cli, name, { reason, yes, ...flags }) => {
  await withStore(cli, flags, async (target, store) => {
    const found = await getConnection(store, name)
    if (yes !== true) throw refuse(target, found, 'delete the credentials of')
    printResult(
      cli,
      target,
      await revokeConnection(store, name, by(reason)),
      `Deleted the credentials of ${name}. Revoke the grant at the vendor too.`,
    )
  })
}

export const connectionsRemove: VerbAction<[string, ReasonFlags]> = async (cli, name, { reason, yes, ...flags }) => {
  await withStore(cli, flags, async (target, store) => {
    const found = await getConnection(store, name)
    if (yes !== true) throw refuse(target, found, 'remove')
    await removeConnection(store, name, by(reason))
    if (cli.terminal.json)
      cli.terminal.printDocument({ ...targetDocument(target), removed: toConnectionDocument(found) })
    else cli.terminal.remark(`Removed connection ${name}. Its syncs stop; their rows stay.`)
  })
}

function refuse({ tenant }: Target, found: Connection, act: string): RefusedError {
  const account = found.account === null ? '' : `, account ${toPrintable(found.account.label)}`
  return new RefusedError(
    'CONFIRMATION_NEEDED',
    `Nothing was changed. Add --yes to ${act} the connection ${found.name} (tenant ${tenant}, ${found.provider}${account}). Its syncs stop; their rows stay.`,
    { connection: toConnectionDocument(found) },
  )
}

function by(reason?: string): ConnectionActor {
  return { actor: actorName(), at: systemClock.now(), ...(reason !== undefined && { reason }) }
}

async function openRuntime(cli: Cli, target: Target) {
  const { ports } = await createRuntime(cli, target)
  return createConnectionRuntime(ports)
}

/** Secrets come from references, standard input or a prompt without echo, never from an argument. */
async function readCredentials(
  cli: Cli,
  { settings: { environment } }: Target,
  provider: string,
  { kind, secret, stdin = false }: { kind: CredentialKind; secret: CredentialFlags['secret']; stdin?: boolean },
): Promise<ConnectionCredentials> {
  const references = parseReferences(secret).map(([name, reference]) => [
    name,
    readSecretReference(reference, environment),
  ])
  const given: Record<string, string> = {
    ...(stdin ? parseSecrets(await readStandardInput()) : {}),
    ...(Object.fromEntries(references) as Record<string, string>),
  }
  for (const value of Object.values(given)) registerSecret(value)
  if (Object.keys(given).length > 0 || kind === 'none') return buildCredentials(provider, kind, given)
  if (!process.stdin.isTTY || !cli.terminal.isInteractive)
    throw new SyncError(
      'CONNECTION_INVALID',
      'No secrets were given. Use --secret name=env:NAME, or --stdin with a JSON object.',
    )
  const asked: Record<string, string> = {}
  for (const name of kind === 'oauth' ? ['refresh_token', 'access_token'] : CREDENTIAL_FIELDS[kind])
    asked[name] = await promptWithoutEcho(`${name}: `)
  for (const value of Object.values(asked)) registerSecret(value)
  return buildCredentials(provider, kind, Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== '')))
}

async function promptWithoutEcho(question: string): Promise<string> {
  process.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true })
  try {
    return (await lines.question('')).trim()
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

function parseSecrets(text: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && Object.values(value).every((field) => typeof field === 'string'))
      return value as Record<string, string>
  } catch {
    // Reported below, because the message of the parser quotes the input.
  }
  throw new SyncError('CONNECTION_INVALID', 'Standard input is not a JSON object of texts.')
}

function parsePair(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write name=value.')
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) }
}

/** Checked later: the parser of arguments would quote the text, which may be a secret. */
function collect(text: string, before: readonly string[]): readonly string[] {
  return [...before, text]
}

function parseReferences(texts: readonly string[]): [name: string, reference: string][] {
  return texts.map((text) => {
    const at = text.indexOf('=')
    if (at > 0 && isSecretReference(text.slice(at + 1))) return [text.slice(0, at), text.slice(at + 1)]
    throw new SyncError(
      'CONNECTION_INVALID',
      'Write --secret name=env:NAME, name=file:/path or name=exec:command. Never write the secret itself.',
    )
  })
}

function parseList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

function printResult(cli: Cli, target: Target, connection: Connection, remark: string | null): void {
  if (cli.terminal.json)
    return cli.terminal.printDocument({ ...targetDocument(target), connection: toConnectionDocument(connection) })
  if (remark !== null) cli.terminal.remark(remark)
  printConnection(cli, connection)
}

function printConnection({ terminal }: Cli, connection: Connection): void {
  const { name, provider, account, status, statusReason, settings, scopes } = connection
  const lines = [
    `${name} (${provider}): ${status}${statusReason === null || statusReason === '' ? '' : `, ${statusReason}`}`,
    `account   ${account === null ? 'unknown' : `${account.label} (${account.id})`}`,
    ...(scopes.length > 0 ? [`scopes    ${scopes.join(' ')}`] : []),
    ...Object.entries(settings).map(([setting, value]) => `${setting}  ${String(value)}`),
  ]
  terminal.print(...lines.map((line) => toPrintable(line)))
}

function printTest({ terminal }: Cli, tested: Awaited<ReturnType<typeof testConnection>> | null): void {
  if (tested === null) return
  if (!tested.ok) return terminal.remark(`The test failed: ${tested.code}, ${toPrintable(tested.message)}`)
  terminal.remark(
    tested.account === null
      ? 'The provider has no request that states the account, so the credentials were not tested.'
      : `The vendor states the account ${toPrintable(tested.account.label)}.`,
  )
}
