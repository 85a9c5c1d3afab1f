import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../cli/package.ts'

const SECTIONS = [
  ['Tutorials', 'docs/tutorials'],
  ['Guides', 'docs/guides', 'docs/guides/destinations'],
  ['Explanation', 'docs/explanation'],
  ['Reference', 'docs/reference', 'docs/reference/api'],
  ['Decisions', 'docs/decisions'],
] as const

/** Renders llms.txt: every page, with its title and first paragraph. */
export function renderLlms(): string {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  return [
    '# Tidemark',
    '',
    `> ${firstParagraph(readme)}`,
    '',
    '- [README.md](README.md): what it is, why, twenty lines, ten minutes',
    '- [ARCHITECTURE.md](ARCHITECTURE.md): how it works, and the invariants with their tests',
    '- [CONTRIBUTING.md](CONTRIBUTING.md): how to build, test, add a source or a store',
    ...SECTIONS.flatMap(([title, ...folders]) => ['', `## ${title}`, '', ...folders.flatMap(pagesOf).map(describe)]),
    '',
  ].join('\n')
}

export function pagesOf(folder: string): string[] {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .toSorted()
    .map((name) => `${folder}/${name}`)
}

function describe(page: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const [, title] = /^# (.+)$/m.exec(text)!
  const [, sentence] = /^(.+?[.:])(?:\s|$)/.exec(firstParagraph(text)) ?? [null, '']
  return `- [${title!.replaceAll(/[[\]]/g, '')}](${page})${sentence === '' ? '' : `: ${sentence!.replace(/[.:]$/, '')}`}`
}

/** The first paragraph that is neither a heading, a table, a list nor code. */
function firstParagraph(text: string): string {
  const paragraph =
    text
      .split(/\n{2,}/)
      .find((part) => /^[A-Za-z`*]/.test(part) && !part.startsWith('```') && !part.startsWith('Status')) ?? ''
  return paragraph.replaceAll('\n', ' ').trim()
}
