import { Command } from 'commander'
import { basename, relative, resolve } from 'node:path'
import { nameFrom } from '../config/names.ts'
import { SyncError } from '../contract/index.ts'
import type { Act } from './cli.ts'
import { findPackage, linkPackage } from './own-package.ts'
import { readTemplate, writeProject } from './project-files.ts'

interface InitFlags {
  readonly force?: boolean
}

export function initVerb(): Command {
  return new Command('init')
    .summary('a worker project that runs at once')
    .description('Makes a worker project that syncs at once, without an account or a network: a small harbour to read from is inside.')
    .argument('[dir]', 'where to make it', '.')
    .option('--force', 'overwrite files that are there already')
    .option('--json', 'answer in JSON, for programs')
}

export const init: Act<[string, InitFlags]> = async (cli, dir, flags) => {
  const folder = resolve(cli.folder, dir)
  const own = findPackage(folder)
  const files = readTemplate('worker', { name: nameFrom(basename(folder)).toLowerCase(), dependency: own.dependency })
  const { written, kept, clashing } = writeProject(folder, files, flags.force === true)
  if (clashing.length > 0) {
    throw new SyncError('ARGUMENT_INVALID', `${folder} already has ${clashing.join(', ')}. Nothing was written. Choose another folder, or add --force to overwrite.`)
  }
  const linked = own.checkout !== null && linkPackage(own.checkout, folder)
  const { terminal } = cli
  if (terminal.json) {
    terminal.document({ folder, written, kept, dependency: own.dependency, linked })
    return
  }
  const cd = relative(cli.folder, folder)
  terminal.print(
    `A worker project is in ${cd === '' ? 'this folder' : cd}: ${written.join(', ')}${kept.length === 0 ? '' : ` (kept: ${kept.join(', ')})`}`,
    '',
    ...[
      ...(cd === '' ? [] : [`cd ${cd}`]),
      ...(own.runsHere || linked ? [] : ['npm install']),
      'npx tidemark run                                     # twice: the second time it finds what moved',
      'npx tidemark query "select * from vessels limit 5"',
      'npx tidemark status',
    ].map((line) => `  ${line}`),
    '',
    'Then point worker.ts at an API of yours; its comments say where.',
  )
}
