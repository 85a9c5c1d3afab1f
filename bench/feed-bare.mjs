// The raw limit of serving a page: a bare server that sends the same bytes from memory.
import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'

const body = readFileSync(process.argv[2])
const server = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
