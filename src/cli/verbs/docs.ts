import { Command } from 'commander'
import { startDocsServer } from '../../server/docs-server.ts'
import type { Cli, VerbAction } from '../cli.ts'
import { parseCountOrZero } from '../kit/arguments.ts'
import { searchDocs } from '../kit/search-docs.ts'
import { waitForAbort } from '../kit/wait-for-abort.ts'

interface DocsFlags {
  readonly port?: number
  readonly json?: boolean
}

export function docsVerb(): Command {
  return new Command('docs')
    .summary('serve or search the documentation, offline')
    .description(
      'Serves the documentation of this version on loopback until Ctrl-C, or searches it for the given words. Needs no network.',
    )
    .argument('[words...]', 'search for these words and print the sections')
    .option('--port <n>', 'port; 0 for any (default: 4681, or any if taken)', parseCountOrZero)
    .option('--json', 'print JSON')
}

export const docs: VerbAction<[string[], DocsFlags]> = async (cli, words, flags) => {
  if (words.length > 0) return printHits(cli, words.join(' '))
  const signal = cli.listenForStop('Stopping.')
  const server = await startDocsServer(flags.port)
  if (cli.terminal.json) cli.terminal.printDocument({ url: server.url })
  else cli.terminal.print(`${server.url}  (Ctrl-C to stop)`)
  await waitForAbort(signal)
  await server.close()
}

async function printHits({ terminal }: Cli, query: string): Promise<void> {
  const hits = await searchDocs(query)
  if (terminal.json) {
    terminal.printDocument({ query, hits })
    return
  }
  if (hits.length === 0) terminal.print(`No section contains all of these words: ${query}.`)
  const { colors } = terminal
  for (const { title, page, href, excerpt } of hits.slice(0, SHOWN_MAX))
    terminal.print(
      `${colors.bold(title)}${title === page ? '' : `, ${page}`}`,
      `  ${colors.dim(href)}`,
      `  ${excerpt}`,
      '',
    )
  const hidden = hits.length - SHOWN_MAX
  if (hidden > 0) terminal.print(`… and ${hidden} more. Add a word to narrow the search.`)
  if (hits.length > 0) terminal.print('`tidemark docs` serves these pages.')
}

const SHOWN_MAX = 8
