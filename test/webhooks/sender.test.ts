import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { WebhookAllowance } from '../../src/contract/index.ts'
import { isPublicAddress } from '../../src/platform/public-address.ts'
import { checkResolvedWebhookUrl, checkWebhookUrl } from '../../src/webhooks/check-url.ts'
import type { ResolvedAddress } from '../../src/platform/resolve-host.ts'
import { createSender, toPrintable } from '../../src/webhooks/send.ts'
import { certify } from './authority.ts'
import { Receiver } from './receiver.ts'

const HTTP: WebhookAllowance[] = ['http']

describe('XF13 Z34 a webhook URL is public', () => {
  test.each([
    'http://127.1',
    'http://0',
    'http://[::]',
    'http://[::ffff:7f00:1]',
    'http://[64:ff9b::7f00:1]',
    'http://localhost.',
    'http://a@127.0.0.1',
    'http://metadata.google.internal',
    'http://1.1.1.1:22',
    'http://2130706433',
    'http://0x7f000001',
    'http://0177.0.0.1',
    'http://１２７.0.0.1',
    'http://169.254.169.254/latest',
    'http://localhost',
    'http://x.localhost',
    'http://intranet',
    'http://10.0.0.1',
    'http://[fd00::1]',
    'http://[fe80::1]',
    'http://user:word@example.com',
    'http://printer.local',
    'http://[::127.0.0.1]',
    'http://[2002:7f00:1::]',
    'ftp://example.com',
    'javascript:alert(1)',
    'not a url',
    '',
  ])('XF13 Z34 when it is added, %s is refused, and the message does not repeat it', (url) => {
    let thrown: unknown
    try {
      checkWebhookUrl(url, HTTP)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: 'WEBHOOK_URL_REFUSED' })
    if (url !== '') expect((thrown as Error).message).not.toContain(url)
  })

  test('XF13 Z34 https to a public name or address is accepted; each refused kind can be allowed separately', () => {
    for (const url of [
      'https://example.com/hook?x=1',
      'https://example.com:443',
      'https://1.1.1.1/',
      'https://[2606:4700::1111]/',
      'https://xn--bcher-kva.example.com',
    ])
      expect(checkWebhookUrl(url, []).href).toBe(new URL(url).href)
    const needs: Array<[string, WebhookAllowance[]]> = [
      ['http://example.com', ['http']],
      ['https://10.0.0.1', ['private']],
      ['https://example.com:8443', ['port']],
      ['http://127.0.0.1:9', ['http', 'private', 'port']],
    ]
    for (const [url, allow] of needs) {
      expect(checkWebhookUrl(url, allow).href).toBe(new URL(url).href)
      for (const one of allow)
        expect(
          () =>
            checkWebhookUrl(
              url,
              allow.filter((other) => other !== one),
            ),
          `${url} without ${one}`,
        ).toThrow()
    }
  })

  test('Z35 the ranges that are not public', () => {
    const refused = [
      '0.1.2.3',
      '10.255.255.255',
      '100.64.0.1',
      '100.127.255.255',
      '127.0.0.1',
      '127.255.255.254',
      '169.254.0.1',
      '172.16.0.1',
      '172.31.255.255',
      '192.0.0.1',
      '192.0.2.1',
      '192.88.99.1',
      '192.168.1.1',
      '198.18.0.1',
      '198.19.255.255',
      '198.51.100.7',
      '203.0.113.9',
      '224.0.0.1',
      '239.255.255.255',
      '240.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      '::ffff:10.0.0.1',
      '::ffff:169.254.169.254',
      '64:ff9b::a00:1',
      '64:ff9b:1::1',
      '100::1',
      '2001::a00:1',
      '2001:db8::1',
      '2002:a00:1::',
      '3fff::1',
      '5f00::1',
      'fc00::1',
      'fdff::1',
      'fe80::1',
      'febf::1',
      'fe80::1%eth0',
      'ff02::1',
      '',
      'x',
      '1.2.3',
      '256.1.1.1',
    ]
    expect(refused.filter(isPublicAddress)).toEqual([])
    const open = [
      '1.1.1.1',
      '9.255.255.255',
      '11.0.0.1',
      '100.63.255.255',
      '100.128.0.1',
      '172.15.255.255',
      '172.32.0.1',
      '192.0.1.1',
      '198.17.255.255',
      '223.255.255.255',
      '::ffff:8.8.8.8',
      '2606:4700:4700::1111',
      '2001:4860::8888',
    ]
    expect(open.filter((address) => !isPublicAddress(address))).toEqual([])
  })
})

describe('XF13 Z34 at registration', () => {
  const check = (addresses: string[] | null, allow: WebhookAllowance[] = []): Promise<unknown> =>
    checkResolvedWebhookUrl('https://hooks.example.com/path', allow, async () => {
      if (addresses === null) throw new Error('ENOTFOUND')
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    })

  test('XF13 Z34 a host with a non-public address is refused, alone or among others', async () => {
    for (const inner of [
      '127.0.0.1',
      '::1',
      '169.254.169.254',
      '10.0.0.1',
      '64:ff9b::a9fe:a9fe',
      '::ffff:127.0.0.1',
      '::ffff:169.254.169.254',
      'fd00:ec2::254',
      '2001::a00:1',
    ]) {
      for (const addresses of [[inner], [inner, '1.1.1.1'], ['1.1.1.1', inner]]) {
        await expect(check(addresses), addresses.join(' ')).rejects.toMatchObject({ code: 'WEBHOOK_URL_REFUSED' })
        await expect(check(addresses, ['private'])).resolves.toBeInstanceOf(URL)
      }
    }
  })

  test('a host with public addresses, or one that does not resolve yet, is accepted', async () => {
    for (const addresses of [['1.1.1.1', '2606:4700::1111'], [], null])
      await expect(check(addresses)).resolves.toBeInstanceOf(URL)
  })
})

describe('XF13 Z34 at connection', () => {
  const shipment = { allow: ['http', 'port'] as WebhookAllowance[], headers: {}, body: '{}' }

  async function trial(
    resolve: () => ResolvedAddress[],
    allow = shipment.allow,
  ): Promise<{ outcomes: string[]; received: number }> {
    const receiver = await Receiver.open()
    const send = createSender({ resolve: async () => resolve() })
    const outcomes: string[] = []
    for (let n = 0; n < 2; n++) {
      const { kind, response } = await send({ ...shipment, allow, url: `http://hooks.example.com:${receiver.port}/` })
      outcomes.push(`${kind}: ${response}`)
    }
    await send.close()
    return { outcomes, received: receiver.received.length }
  }

  test('XF13 Z34 a host with one non-public address is not connected to, whichever comes first', async () => {
    for (const addresses of [
      [{ address: '::1', family: 6 }],
      [
        { address: '1.1.1.1', family: 4 },
        { address: '::1', family: 6 },
      ],
      [
        { address: '127.0.0.1', family: 4 },
        { address: '1.1.1.1', family: 4 },
      ],
    ]) {
      expect(await trial(() => addresses)).toEqual({
        outcomes: Array(2).fill('failed: the host resolves to an address that is not public'),
        received: 0,
      })
    }
    expect((await trial(() => [])).outcomes[0]).toContain('failed')
  })

  test('XF13 Z34 a host that resolves differently the second time is checked by the connected address', async () => {
    // Public at registration, private at connection: the check is part of connecting.
    expect(await trial(() => [{ address: '127.0.0.1', family: 4 }])).toMatchObject({ received: 0 })
    // The same way works where it is allowed, so the check refused it.
    expect(await trial(() => [{ address: '127.0.0.1', family: 4 }], ['http', 'port', 'private'])).toEqual({
      outcomes: ['delivered: null', 'delivered: null'],
      received: 2,
    })
  })

  test('XF13 Z34 a literal address is refused at every attempt, and a revoked allowance applies at once', async () => {
    const receiver = await Receiver.open()
    const send = createSender()
    expect(await send({ ...shipment, url: receiver.url, allow: ['http', 'port', 'private'] })).toMatchObject({
      kind: 'delivered',
      status: 204,
    })
    expect(await send({ ...shipment, url: receiver.url })).toMatchObject({ kind: 'failed', status: null })
    expect(receiver.received).toHaveLength(1)
    await send.close()
  })

  test.each([
    [200, 'delivered'],
    [204, 'delivered'],
    [299, 'delivered'],
    [300, 'failed'],
    [301, 'failed'],
    [302, 'failed'],
    [303, 'failed'],
    [304, 'failed'],
    [307, 'failed'],
    [308, 'failed'],
    [399, 'failed'],
    [400, 'failed'],
    [410, 'gone'],
    [500, 'failed'],
  ] as const)('XF10 Z33 a response with %i is %s, and no redirect is followed', async (status, kind) => {
    const elsewhere = await Receiver.open()
    const receiver = await Receiver.open(
      (_, response) => void response.writeHead(status, { location: elsewhere.url }).end(),
    )
    const send = createSender()
    expect(await send({ ...shipment, url: receiver.url, allow: ['http', 'port', 'private'] })).toMatchObject({
      kind,
      status,
    })
    await send.close()
    expect([receiver.received.length, elsewhere.received.length]).toEqual([1, 0])
  })

  test('XF16 the query of the receiver’s URL is not shown, however the receiver echoes it', async () => {
    const query = '?tenant=acme&token=s%2Fcret-4711'
    const repeats = [
      `no access to /hook${query}`,
      'token s%2Fcret-4711 is unknown',
      'token "s/cret-4711" is unknown',
      'nothing to see',
    ]
    const send = createSender()
    const answers: Array<string | null> = []
    for (const text of repeats) {
      const receiver = await Receiver.open((_, response) => void response.writeHead(403).end(text))
      answers.push(
        (await send({ ...shipment, url: `${receiver.url}${query}`, allow: ['http', 'port', 'private'] })).response,
      )
    }
    await send.close()
    expect(answers).toEqual(['no access to /hook…', 'token … is unknown', 'token "…" is unknown', 'nothing to see'])
  })

  test('Z33 over https: only to a receiver with a trusted certificate for that name', async () => {
    const { ca, cert, key } = certify('hooks.example.com')
    const names: string[] = []
    const server = createServer({ cert, key }, (request, response) => {
      names.push(String(request.headers.host))
      request.resume().on('end', () => response.writeHead(204).end())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const resolve = async (): Promise<ResolvedAddress[]> => [{ address: '127.0.0.1', family: 4 }]
    const [trusting, wary] = [createSender({ resolve, ca }), createSender({ resolve })]
    const to = (name: string) => ({
      ...shipment,
      allow: ['port', 'private'] as WebhookAllowance[],
      url: `https://${name}:${port}/`,
    })
    expect(await trusting(to('hooks.example.com'))).toMatchObject({ kind: 'delivered', status: 204 })
    expect(await trusting(to('other.example.com'))).toMatchObject({
      kind: 'failed',
      status: null,
      response: 'the connection failed (ERR_TLS_CERT_ALTNAME_INVALID)',
    })
    expect(await wary(to('hooks.example.com'))).toMatchObject({
      kind: 'failed',
      status: null,
      response: expect.stringMatching(/^the connection failed \(.*(?:SIGNATURE|ISSUER|SIGNED)/),
    })
    // An address instead of the name does not bypass it.
    expect(await trusting(to('127.0.0.1'))).toMatchObject({ kind: 'failed', status: null })
    expect(names).toEqual([`hooks.example.com:${port}`])
    await Promise.all([trusting.close(), wary.close()])
  })

  test('Z34 proxies of the environment are not used', async () => {
    const [proxy, receiver] = [await Receiver.open(), await Receiver.open()]
    const before = { ...process.env }
    Object.assign(process.env, { HTTP_PROXY: proxy.url, http_proxy: proxy.url, ALL_PROXY: proxy.url })
    const send = createSender()
    try {
      expect(await send({ ...shipment, url: receiver.url, allow: ['http', 'port', 'private'] })).toMatchObject({
        kind: 'delivered',
      })
    } finally {
      process.env = before
      await send.close()
    }
    expect([proxy.received.length, receiver.received.length]).toEqual([0, 1])
  })

  test('Z37 the response of a receiver is shown without control characters', () => {
    expect(toPrintable('a\u001b[2J\u202eb\r\n\tc\u0000d')).toBe('a [2J b c d')
    expect(toPrintable('x'.repeat(1_000))).toHaveLength(256)
  })
})
