import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export interface Block {
  readonly language: string
  readonly text: string
}

/** The code blocks of a docs page, in order. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(resolve(import.meta.dirname, '../..'), page), 'utf8')
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, language, code]) => ({
    language: language!,
    text: code!,
  }))
}

/** Each `npx tidemark …` of a block, as arguments. */
export function commandsIn({ text }: Block): string[][] {
  return text.split('\n').flatMap((line) => {
    const [, command] = /^npx tidemark (.*?)(?:\s+#.*)?$/.exec(line) ?? []
    return command === undefined
      ? []
      : [[...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!)]
  })
}
