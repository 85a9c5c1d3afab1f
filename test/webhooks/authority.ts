import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certified {
  /** The certificate of the authority; its private key is discarded. */
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** Creates a certificate for one name with a new authority. */
export function certify(name: string): Certified {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-authority-'))
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
  const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  try {
    openssl(
      'req',
      '-x509',
      ...fresh,
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-subj',
      '/CN=an authority for tests',
      '-days',
      '2',
    )
    openssl('req', ...fresh, '-keyout', 'server.key', '-out', 'server.csr', '-subj', `/CN=${name}`)
    writeFileSync(join(folder, 'names'), `subjectAltName=DNS:${name}\n`)
    openssl(
      'x509',
      '-req',
      '-in',
      'server.csr',
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-out',
      'server.pem',
      '-days',
      '2',
      '-extfile',
      'names',
    )
    return { ca: read('ca.pem'), cert: read('server.pem'), key: read('server.key') }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
