import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CONNECTORS } from '../../src/config/manifest/connectors.ts'
import { createLog } from '../../src/platform/log.ts'
import { FakeClock } from '../engine/fake-clock.ts'

const SECRETS: Record<string, string> = { ID: 'client', SECRET: 'client-secret', FIRST: 'refresh-0' }
const OAUTH = {
  token_url: 'https://auth.example.com/token',
  client_id: '${ID}',
  client_secret: '${SECRET}',
  refresh_token: '${FIRST}',
}
const VENDORS = {
  hubspot: { oauth: OAUTH, base_url: 'https://api.example.com' },
  salesforce: { instance_url: 'https://api.example.com', oauth: OAUTH },
  servicenow: { instance_url: 'https://api.example.com', oauth: OAUTH },
} as const

describe.each(Object.keys(VENDORS) as Array<keyof typeof VENDORS>)('a manifest of %s', (connector) => {
  test('continues with the newest refresh token after a restart and in another process, and stores it encrypted', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-tokens-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const clock = new FakeClock()
    const sent: string[] = []
    const secrets = { get: (name: string) => SECRETS[name.replaceAll(/[${}]/g, '')] ?? name }
    const fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
      if (new URL(input).hostname !== 'auth.example.com')
        return Response.json({ results: [], sobjects: [], result: [] })
      sent.push(new URLSearchParams(String(init?.body)).get('refresh_token')!)
      return Response.json({
        access_token: `access-${sent.length}`,
        refresh_token: `refresh-${sent.length}`,
        expires_in: 60,
      })
    }
    for (let process = 0; process < 3; process++) {
      const source = CONNECTORS[connector]
      const config = JSON.parse(JSON.stringify(VENDORS[connector]), (_, value: unknown) =>
        typeof value === 'string' && value.startsWith('${') ? value.slice(2, -1) : value,
      ) as object
      await source.discover!(config, folder, {
        fetch,
        secrets,
        signal: new AbortController().signal,
        clock,
        log: createLog({ level: 'silent' }),
      }).catch(() => {})
      await clock.advance(120_000)
    }
    expect(sent).toEqual(['refresh-0', 'refresh-1', 'refresh-2'])
    const kept = readdirSync(join(folder, '.tidemark/tokens')).map((name) =>
      readFileSync(join(folder, '.tidemark/tokens', name), 'utf8'),
    )
    expect(kept.join('\n')).not.toMatch(/refresh-|access-/)
  })
})
