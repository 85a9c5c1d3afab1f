import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const source = resolve(import.meta.dirname, '../../src')
const files = readdirSync(join(source, 'strategies'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')).map((name) => join(source, 'strategies', name))

test('strategies import the contract, values and one another, and nothing else', () => {
  const offences: string[] = []
  for (const file of files) {
    for (const [, target] of readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^'"`;]*?\bfrom\s+'([^']+)'/gm)) {
      const folder = target!.startsWith('.') ? relative(source, resolve(dirname(file), target!)).split('/')[0]! : target!
      if (!['contract', 'values', 'strategies'].includes(folder)) offences.push(`${relative(source, file)} imports ${target}`)
    }
  }
  expect(offences).toEqual([])
})

test('strategies have no clock, chance, network or environment of their own', () => {
  const forbidden = [/\bDate\.now\b/, /\bnew Date\(\)/, /\bMath\.random\b/, /\bset(?:Timeout|Interval|Immediate)\b/, /\bperformance\./, /\bprocess\./, /\bglobalThis\b/, /(?<![.\w])fetch\(/, /\blocaleCompare\b/]
  const offences: string[] = []
  for (const file of files) {
    const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
    for (const pattern of forbidden) if (pattern.test(code)) offences.push(`${relative(source, file)}: ${pattern.source}`)
  }
  expect(offences).toEqual([])
})

test('nothing lives at the top of a strategy that a cycle could change', () => {
  for (const file of files) expect(readFileSync(file, 'utf8'), file).not.toMatch(/^(?:export )?(?:let|var)\b/m)
})
