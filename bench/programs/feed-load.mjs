// node bench/programs/feed-load.mjs <port> <key> <seconds> walk|stay <queries…>: requests pages over eight connections
// as fast as possible. Bare sockets, so that the client is not the bottleneck.
import { connect } from 'node:net'

const [port, key, seconds, mode, ...starts] = process.argv.slice(2)
const CONNECTIONS = 8
const MARK = Buffer.from('"nextCursor":"')
const END = Buffer.from('\r\n\r\n')
const until = Date.now() + Number(seconds) * 1_000
let [pages, bytes] = [0, 0]

await Promise.all(Array.from({ length: CONNECTIONS }, (_, n) => walk(starts[n % starts.length])))
console.log(JSON.stringify({ pages: pages / Number(seconds), bytes: bytes / pages }))

/** walk: from page to page by the cursor, and from the start again at the end. stay: always the second page. */
function walk(start) {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1')
    let [pieces, have, want, headerLength, stays] = [[], 0, -1, 0, null]
    const headers = `host: 127.0.0.1:${port}\r\nauthorization: Bearer ${key}\r\n\r\n`
    const ask = (query) => socket.write(`GET /agents/v1/changes?limit=100${query} HTTP/1.1\r\n${headers}`)
    socket
      .on('connect', () => ask(start))
      .on('error', reject)
      .on('close', resolve)
    socket.on('data', (piece) => {
      pieces.push(piece)
      have += piece.length
      if (want < 0) {
        const all = Buffer.concat(pieces)
        const end = all.indexOf(END)
        if (end < 0) return
        const head = all.toString('latin1', 0, end)
        if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(all.toString()))
        headerLength = end + 4
        want = headerLength + Number(/content-length: (\d+)/i.exec(head)[1])
        pieces = [all]
      }
      if (have < want) return
      const tail = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces.slice(-2))
      const at = tail.lastIndexOf(MARK)
      const cursor = tail.toString('latin1', at + MARK.length, tail.indexOf(34, at + MARK.length))
      const more = tail.indexOf('"hasMore":true', at) > 0
      pages++
      bytes += want - headerLength
      ;[pieces, have, want] = [[], 0, -1]
      if (Date.now() > until) return socket.destroy()
      stays ??= at < 0 ? start : `&cursor=${cursor}`
      ask(mode !== 'walk' ? stays : more ? `&cursor=${cursor}` : start)
    })
  })
}
