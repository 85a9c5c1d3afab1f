import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isSecretReference, readSecretReference } from '../../src/platform/secret-references.ts'
import { createSecrets } from '../../src/platform/secrets.ts'
import { maskSecrets } from '../../src/redaction/known-secrets.ts'

function secretFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-secret-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'secret')
  writeFileSync(file, text)
  return file
}

describe('a reference to a secret', () => {
  test('is read from a variable, a file or a command, and the value is masked from then on', () => {
    const file = secretFile('canary-of-the-file\n')
    expect(readSecretReference('env:OTHER', { OTHER: 'canary-of-other' })).toBe('canary-of-other')
    expect(readSecretReference(`file:${file}`, {})).toBe('canary-of-the-file')
    expect(readSecretReference('exec:echo canary-of-exec $HOME;true', {})).toBe('canary-of-exec $HOME;true')
    expect(maskSecrets('canary-of-the-file canary-of-exec')).not.toContain('canary-of-the-file')
  })

  test('a file is read for every use, also for one tenant: a secret rotates without a restart', () => {
    const file = secretFile('first-secret')
    const secrets = createSecrets({ TOKEN__acme: `file:${file}`, TOKEN: 'shared-secret' }, 'acme')
    expect(secrets.get('TOKEN')).toBe('first-secret')
    writeFileSync(file, 'second-secret')
    expect(secrets.get('TOKEN')).toBe('second-secret')
    expect(createSecrets({ TOKEN: 'shared-secret' }, 'acme').get('TOKEN')).toBe('shared-secret')
  })

  test('failures name the reference and never the output', () => {
    const large = secretFile('canary-large '.repeat(10_000))
    for (const reference of [
      'env:ABSENT',
      'file:/no/such/file',
      `file:${large}`,
      'exec:/no/such/command',
      `exec:cat ${large}`,
      'exec:false',
    ]) {
      const read = (): string => readSecretReference(reference, {})
      expect(read).toThrow(expect.objectContaining({ code: 'SECRET_MISSING' }))
      expect(read).not.toThrow(/canary/)
    }
  })

  test('a path that is not absolute, and every other text, is the secret itself', () => {
    for (const text of ['file:./dev.db', 'plain', 'https://example.com', 'environment:x', 'env:'])
      expect(isSecretReference(text), text).toBe(false)
    expect(createSecrets({ URL_OF_DATABASE: 'file:./dev.db' }).get('URL_OF_DATABASE')).toBe('file:./dev.db')
  })
})
