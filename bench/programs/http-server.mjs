// node bench/programs/http-server.mjs <records> <page size>: an API on loopback that serves pages from memory;
// prints its port.
import { createServer } from 'node:http'
import { recordOf } from '../records.mjs'

const [count, size] = process.argv.slice(2).map(Number)
const pages = []
for (let from = 0; from < count; from += size) {
  const records = Array.from({ length: Math.min(size, count - from) }, (_, i) => recordOf(from + i))
  pages.push(Buffer.from(JSON.stringify({ records, next: from + size < count ? from / size + 1 : null })))
}
const server = createServer((request, response) => {
  const page = pages[Number(new URL(request.url, 'http://localhost').searchParams.get('page'))]
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': page.length })
  response.end(page)
})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })))
process.on('disconnect', () => process.exit(0))
