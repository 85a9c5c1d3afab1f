// A bucket on loopback; says its port, and ends with its parent.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'

const directory = mkdtempSync(join(tmpdir(), 'tidemark-s3-'))
const server = new S3rver({
  address: '127.0.0.1',
  port: 0,
  silent: true,
  directory,
  configureBuckets: [{ name: 'sales' }],
})
const { port } = await server.run()
process.stdout.write(`${port}\n`)
process.stdin.resume().on('end', () => {
  rmSync(directory, { recursive: true, force: true })
  process.exit(0)
})
