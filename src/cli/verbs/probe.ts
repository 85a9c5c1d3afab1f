import { existsSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Command, Option } from 'commander'
import { SyncError } from '../../contract/index.ts'
import { isManifest } from '../../worker/load-worker.ts'
import { compareContract } from '../../probe/compare-contract.ts'
import { sketchUrl, splitUrl, type UrlHints } from '../../probe/describe-url.ts'
import type { Contradiction } from '../../probe/fact.ts'
import { planProbe, type ProbeStep } from '../../probe/observe.ts'
import { probeStream, probeUrl, type ListReport } from '../../probe/probe-list.ts'
import { planSyncProbe, probeSync, type SyncReport } from '../../probe/probe-sync.ts'
import { maskUrl } from '../../redaction/mask-url.ts'
import { apiKey, bearer, type Auth } from '../../sources/kit/auth.ts'
import { createHttpClient } from '../../sources/kit/http-client.ts'
import { parseCount, parseSeconds } from '../kit/arguments.ts'
import { parseAnswers } from '../kit/advise-answers.ts'
import { askSource } from '../kit/ask-source.ts'
import type { Cli, VerbAction } from '../cli.ts'
import { openManifestStream, type OpenedStream } from '../kit/manifest-stream.ts'
import { printProbe, printProbePlan, probeDocument, stepDocument } from '../kit/print-probe.ts'
import { formatProbeManifest } from '../kit/probe-manifest.ts'
import { loadWorkerTarget, printTarget, resolveStoreTarget, withStoreFlags, type TargetFlags } from '../kit/target.ts'

interface ProbeFlags extends TargetFlags, UrlHints {
  readonly dryRun?: boolean
  readonly requests: number
  readonly watch?: number
  readonly bearer?: string
  readonly header?: string
  readonly parameter?: string
  readonly answer?: readonly string[]
  readonly write?: string
  readonly force?: boolean
}

const REQUESTS_DEFAULT = 25
const POLL_MS = 10_000

export function probeVerb(): Command {
  return withStoreFlags(new Command('probe'))
    .summary('ask an API how its list behaves')
    .description(
      'Sends a bounded number of read-only requests to the list of an API and reports what it shows: whether its time filter is inclusive, the unit of its times, page borders, order, late rows, deletions and rate limits. Recommends a strategy. For a sync of a worker, compares what its source declares with what the API does; exit code 1 if they differ. In a URL, a parameter without a value is known to the API and not sent.',
    )
    .argument('<target>', 'the URL of a list, or a sync of the worker file')
    .option('--dry-run', 'show the requests without sending them')
    .addOption(new Option('--requests <n>', 'send at most n requests').argParser(parseCount).default(REQUESTS_DEFAULT))
    .addOption(new Option('--watch <time>', 'read the newest rows for this long: 60s').argParser(parseSeconds))
    .option('--records <path>', 'the path of the records in an answer')
    .option('--key <field>', 'the key of a record')
    .option('--cursor <field>', 'the time of the last change of a record')
    .option('--since <parameter>', 'the parameter of the lower time bound')
    .option('--until <parameter>', 'the parameter of the upper time bound')
    .option('--lookup <path>', 'the path of one record: /contacts/{key}')
    .addOption(new Option('--bearer <setting>', 'the setting with the bearer token').conflicts('header'))
    .addOption(new Option('--header <name=setting>', 'a header, and the setting with its value').conflicts('parameter'))
    .addOption(
      new Option('--parameter <name=setting>', 'a query parameter, and the setting with its value').conflicts('bearer'),
    )
    .addOption(
      new Option('--answer <name=value>', 'an answer for `advise`; repeatable').argParser(
        (text: string, before: string[] | undefined) => [...(before ?? []), text],
      ),
    )
    .option('--write <file>', 'write a manifest for the list of a URL')
    .option('--force', 'overwrite an existing manifest')
}

export const probe: VerbAction<[string, ProbeFlags]> = async (cli, target, flags) =>
  /^https?:\/\//i.test(target) ? probeAddress(cli, target, flags) : probeDeclared(cli, target, flags)

async function probeAddress(cli: Cli, text: string, flags: ProbeFlags): Promise<void> {
  if (!URL.canParse(text)) throw new SyncError('ARGUMENT_INVALID', `${maskUrl(text)} is not a URL.`)
  const url = new URL(text)
  assertNoCredentials(url)
  const out = flags.write === undefined ? null : resolve(cli.folder, flags.write)
  if (out !== null && existsSync(out) && flags.force !== true) throw existsError(out)
  const answers = parseAnswers(flags.answer ?? [])
  const auth = parseAuth(flags)
  const options = { ...toOptions(flags), answers }
  const steps = planProbe(sketchUrl(url, flags), {
    polls: options.watch?.polls ?? 0,
    basePath: new URL(splitUrl(url).baseUrl).pathname.replace(/\/$/, ''),
  })
  const description = { purpose: 'description', requestsMax: 1, example: `GET ${url.pathname}` }
  const plan = [description, ...steps]
  if (flags.dryRun === true) return showPlan(cli, plan, flags.requests)
  printProbePlan(cli, plan, flags.requests)
  const http = auth.given === undefined ? {} : { auth: auth.given }
  const report = await askSource(
    cli,
    resolveStoreTarget(cli, flags),
    { worker: 'probe', verb: 'probe', extraMs: flags.watch ?? 0 },
    (context) => probeUrl(url, flags, http, context, options),
  )
  const manifest =
    report.described === null
      ? null
      : formatProbeManifest(
          maskUrl(url.origin + url.pathname),
          splitUrl(url).baseUrl,
          report.described,
          report,
          auth.manifest,
        )
  if (out !== null && manifest !== null) writeManifest(out, manifest, flags.force === true)
  if (cli.terminal.json)
    cli.terminal.printDocument({ ...probeDocument(report, []), manifest, written: flags.write ?? null })
  else printProbe(cli, report, [], out === null ? manifest : null)
  if (out !== null && !cli.terminal.json)
    cli.terminal.print('', `Wrote ${flags.write}. Next: npx tidemark check ${flags.write}`)
}

async function probeDeclared(cli: Cli, sync: string, flags: ProbeFlags): Promise<number> {
  const target = await loadWorkerTarget(cli, flags)
  const plan = target.worker.plan(sync)
  const listing = plan.pair?.role === 'delta' ? target.worker.plan(plan.pair.backfill) : plan
  if (flags.write !== undefined)
    throw new SyncError('ARGUMENT_INVALID', `--write needs a URL. ${sync} is declared already.`)
  printTarget(cli, target)
  const path = resolve(cli.folder, target.file)
  const opened = isManifest(path) ? await openManifestStream(path, target.file, plan, cli.environment) : null
  const steps =
    opened === null ? planSyncProbe(listing) : planProbe(opened.stream, { polls: toOptions(flags).watch?.polls ?? 0 })
  if (flags.dryRun === true) {
    showPlan(cli, steps, flags.requests)
    return 0
  }
  printProbePlan(cli, steps, flags.requests)
  const ask = { worker: target.name, verb: 'probe', plan: listing, extraMs: flags.watch ?? 0 }
  const { report, contradictions } = await askSource(cli, { ...target }, ask, async (context) => {
    if (opened === null) {
      const found = await probeSync(listing, context, { requestsMax: flags.requests })
      return { report: found as SyncReport | ListReport, contradictions: found.contradictions }
    }
    return probeOpened(opened, context, flags)
  })
  if (cli.terminal.json) cli.terminal.printDocument({ sync, ...probeDocument(report, contradictions) })
  else printProbe(cli, report, contradictions, null)
  const isUnread = report.facts.some(({ topic, value }) => topic === 'records' && value === 'unknown')
  return contradictions.length > 0 || isUnread ? 1 : 0
}

async function probeOpened(
  { stream, http }: OpenedStream,
  context: Parameters<typeof probeStream>[2],
  flags: ProbeFlags,
): Promise<{ report: SyncReport | ListReport; contradictions: readonly Contradiction[] }> {
  const report = await probeStream(stream, createHttpClient(http), context, toOptions(flags))
  return { report, contradictions: compareContract(stream, report.facts) }
}

function showPlan(cli: Cli, steps: readonly ProbeStep[], budget: number): void {
  if (cli.terminal.json) cli.terminal.printDocument({ budget, steps: steps.map(stepDocument) })
  else printProbePlan(cli, steps, budget)
  cli.terminal.remark('', 'Nothing was sent.')
}

function toOptions({ requests, watch }: ProbeFlags): {
  requestsMax: number
  watch?: { polls: number; everyMs: number }
} {
  if (watch === undefined) return { requestsMax: requests }
  const polls = Math.max(1, Math.round(watch / POLL_MS))
  return { requestsMax: requests, watch: { polls, everyMs: watch / polls } }
}

function parseAuth({ bearer: token, header, parameter }: ProbeFlags): {
  readonly given?: Auth
  readonly manifest: object
} {
  if (token !== undefined) return { given: bearer(token), manifest: { kind: 'bearer', token: `\${${token}}` } }
  const place = header === undefined ? 'query' : 'header'
  const text = header ?? parameter
  if (text === undefined) return { manifest: {} }
  const [, name, setting] = /^([\w-]+)=(\w+)$/.exec(text) ?? []
  if (name === undefined || setting === undefined)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `--${header === undefined ? 'parameter' : 'header'} needs the form name=SETTING, such as x-api-key=API_KEY.`,
    )
  return {
    given: apiKey(place === 'header' ? { header: name, key: setting } : { query: name, key: setting }),
    manifest: { kind: 'api_key', [place]: name, key: `\${${setting}}` },
  }
}

/** Credentials in a URL would be shown, and written to the manifest. */
function assertNoCredentials({ username, password, searchParams }: URL): void {
  if (username !== '' || password !== '')
    throw new SyncError(
      'ARGUMENT_INVALID',
      'A URL must not contain credentials. Use --bearer, --header or --parameter.',
    )
  const secret = [...searchParams].find(([name, value]) => value !== '' && CREDENTIAL.test(name))
  if (secret !== undefined)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The URL has a value of \`${secret[0]}\`, which may be a credential. Put it in .env and add --parameter ${secret[0]}=<setting>.`,
    )
}

const CREDENTIAL =
  /^(?:key|token|auth|sig|signature)$|api_?key|app_?key|pass(?:word|wd)?$|pwd|secret|(?:access|auth|bearer|api|session|private)[_-]?token/i

function writeManifest(path: string, text: string, force: boolean): void {
  try {
    writeFileSync(path, text, { flag: force ? 'w' : 'wx' })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw existsError(path)
    throw new SyncError('ARGUMENT_INVALID', `${dirname(path)} cannot be written: ${(cause as Error).message}`, {
      cause,
    })
  }
}

function existsError(path: string): SyncError {
  return new SyncError(
    'ARGUMENT_INVALID',
    `${path} already exists. Nothing was written. Choose another name, or add --force to overwrite it.`,
  )
}
