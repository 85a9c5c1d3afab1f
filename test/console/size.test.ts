import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'

const built = join(import.meta.dirname, '../../dist/console')

test.skipIf(!existsSync(built))(
  'the console is small: its JavaScript is below 300 kB compressed, with no external resources and no inline scripts',
  () => {
    const names = readdirSync(built, { recursive: true, encoding: 'utf8' })
    const packed = names
      .filter((name) => name.endsWith('.js'))
      .reduce((sum, name) => sum + gzipSync(readFileSync(join(built, name))).length, 0)
    expect(packed).toBeGreaterThan(10_000)
    expect(packed).toBeLessThan(300_000)
    const page = readFileSync(join(built, 'index.html'), 'utf8')
    expect(
      [...page.matchAll(/(?:src|href)="([^"]+)"/g)]
        .map(([, address]) => address)
        .filter((address) => !address!.startsWith('/console/')),
    ).toEqual([])
    expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=/)
  },
)
