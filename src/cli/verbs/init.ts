import { Command, Option } from 'commander'
import { basename, relative, resolve } from 'node:path'
import { toValidName } from '../../config/names.ts'
import { SyncError } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { INIT_SOURCES, type InitSource, type InitSourceName } from '../kit/init-sources.ts'
import { isoTime } from '../kit/json-document.ts'
import { findPackage, linkPackage } from '../kit/own-package.ts'
import { readTemplate, writeProject } from '../kit/project-files.ts'

interface InitFlags {
  readonly source?: InitSourceName
  readonly yes?: boolean
  readonly force?: boolean
}

export function initVerb(): Command {
  return new Command('init')
    .summary('a worker project that runs at once')
    .description('Makes a worker project for a source of yours. On a terminal it asks which. Each runs at once, without an account or a network, against something simulated, and against the real one as soon as its key is in .env.')
    .argument('[dir]', 'where to make it', '.')
    .addOption(new Option('--source <name>', 'what it reads from').choices(Object.keys(INIT_SOURCES)))
    .option('--yes', 'ask nothing; without --source, a small harbour inside the worker')
    .option('--force', 'overwrite files that are there already')
    .option('--json', 'answer in JSON, for programs')
}

export const init: VerbAction<[string, InitFlags]> = async (cli, dir, flags) => {
  const folder = resolve(cli.folder, dir)
  const name = flags.source ?? (flags.yes !== true && process.stdin.isTTY && cli.terminal.isInteractive ? await promptForSource() : 'harbour')
  const source: InitSource = INIT_SOURCES[name]
  const own = findPackage(folder)
  const files = readTemplate(name === 'harbour' ? ['worker'] : ['worker', `sources/${name}`], templateValues(source, toValidName(basename(folder)).toLowerCase(), own.dependency))
  const { written, kept, clashing } = writeProject(folder, files, flags.force === true)
  if (clashing.length > 0) {
    throw new SyncError('ARGUMENT_INVALID', `${folder} already has ${clashing.join(', ')}. Nothing was written. Choose another folder, or add --force to overwrite.`)
  }
  const linked = own.checkout !== null && linkPackage(own.checkout, folder)
  // A checkout has all that its own tests need.
  const needsInstall = !(own.runsHere || linked) || source.packages !== undefined || (source.devPackages !== undefined && !linked)
  const { terminal } = cli
  if (terminal.json) terminal.printDocument({ folder, source: name, written, kept, dependency: own.dependency, linked })
  else printSummary(cli, source, { cd: relative(cli.folder, folder), written, kept, needsInstall })
}

/** Asks with arrows and Enter; loaded only where somebody can be asked. */
async function promptForSource(): Promise<InitSourceName> {
  const { isCancel, select } = await import('@clack/prompts')
  const options = Object.entries<InitSource>(INIT_SOURCES).map(([value, { title }]) => ({ value: value as InitSourceName, label: title }))
  const answer = await select({ message: 'What do you want a copy of?', options, maxItems: 12 })
  if (isCancel(answer)) throw new SyncError('CANCELLED', 'Nothing was chosen and nothing was written.')
  return answer
}

function templateValues(source: InitSource, name: string, dependency: string): Record<string, string> {
  const { database, sync, settings, packages = {}, devPackages } = source
  return {
    first: describeNextStep(source),
    name, dependency, database, sync, key: database === 'vessels' ? 'V001' : '<key>', now: isoTime(Math.floor(systemClock.now() / 1_000) * 1_000),
    settings: Object.entries(settings).map(([setting, what]) => `# ${what}\n# ${setting}=`).join('\n') || '# This source needs none.',
    packages: packageLines(packages).map((line) => `,${line}`).join(''),
    devDependencies: devPackages === undefined ? '' : `,\n  "devDependencies": {${packageLines(devPackages).join(',')}\n  }`,
  }
}

function packageLines(packages: Readonly<Record<string, string>>): string[] {
  return Object.entries(packages).map(([name, version]) => `\n    "${name}": "${version}"`)
}

interface InitSummary {
  /** From where the command was given; empty for the same folder. */
  readonly cd: string
  readonly written: readonly string[]
  readonly kept: readonly string[]
  readonly needsInstall: boolean
}

/** What it reads now, and what leads to the real thing. */
function describeNextStep({ database, settings, simulated, until }: InitSource): string {
  const last = Object.keys(settings).at(-1)
  if (database === 'vessels') return 'Then point worker.ts at an API of yours; its comments say where.'
  if (last === undefined) return 'worker.ts says what is read and how often.'
  return `It reads ${simulated} until ${until ?? `${last} is set in .env (see .env.example), and from then on the real one`}. Begin with a fresh store then: rm -r .tidemark`
}

function printSummary({ terminal }: Cli, source: InitSource, { cd, written, kept, needsInstall }: InitSummary): void {
  terminal.print(
    `A worker project is in ${cd === '' ? 'this folder' : cd}: ${written.join(', ')}${kept.length === 0 ? '' : ` (kept: ${kept.join(', ')})`}`,
    '',
    ...[
      ...(cd === '' ? [] : [`cd ${cd}`]),
      ...(needsInstall ? ['npm install'] : []),
      'npx tidemark run                                     # twice: the second time it finds what moved',
      `npx tidemark query "select * from ${source.database} limit 5"`,
      'npx tidemark status',
    ].map((line) => `  ${line}`),
    '',
    describeNextStep(source),
  )
}
