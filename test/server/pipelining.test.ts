import { connect } from 'node:net'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { serializeRequests } from '../../src/server/serialize-requests.ts'

const REQUEST = 'GET /x HTTP/1.1\r\nhost: x\r\n\r\n'

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(serializeRequests(listener)).listen(0, '127.0.0.1')
  onTestFinished(() => server.close().closeAllConnections())
  await new Promise((resolve) => server.once('listening', resolve))
  return (server.address() as AddressInfo).port
}

/** Reads until the connection ends, or until this many responses have arrived. */
function talk(port: number, text: string, answers: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => void socket.write(text))
    onTestFinished(() => void socket.destroy())
    let said = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      if (said.split('HTTP/1.1 200').length > answers) resolve(said)
    })
    socket.on('close', () => resolve(said)).on('error', () => {})
  })
}

test('pipelined requests are answered in order, one at a time, and the connection stays usable', async () => {
  let [now, most, count] = [0, 0, 0]
  const port = await serve((_, response) => {
    const mine = ++count
    most = Math.max(most, ++now)
    setImmediate(() => {
      now--
      response.end(`answer ${mine};`)
    })
  })
  const said = await talk(port, REQUEST.repeat(30), 30)
  expect(said.match(/answer \d+/g)).toEqual(Array.from({ length: 30 }, (_, n) => `answer ${n + 1}`))
  expect(most).toBe(1)
})

test('a client that pipelines far more than it reads is disconnected, and others are served', async () => {
  const held: Array<() => void> = []
  const port = await serve((request, response) => {
    if (request.headers.host === 'slow') held.push(() => response.end('late'))
    else response.end('soon')
  })
  expect(await talk(port, REQUEST.replace('host: x', 'host: slow').repeat(500), 1)).toBe('')
  expect(held).toHaveLength(1)
  expect(await talk(port, REQUEST, 1)).toContain('soon')
})
