// node bench/http-server.mjs <records>: an API on loopback that serves pages from memory; prints its port.
import { createServer } from 'node:http'
import { PAGE, recordOf } from './records.mjs'

const count = Number(process.argv[2])
const pages = []
for (let from = 0; from < count; from += PAGE) {
  const records = Array.from({ length: PAGE }, (_, i) => recordOf(from + i))
  pages.push(Buffer.from(JSON.stringify({ records, next: from + PAGE < count ? from / PAGE + 1 : null })))
}
const server = createServer((request, response) => {
  const page = pages[Number(new URL(request.url, 'http://localhost').searchParams.get('page'))]
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': page.length })
  response.end(page)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.on('disconnect', () => process.exit(0))
