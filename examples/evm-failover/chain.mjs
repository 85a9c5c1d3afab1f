import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Starts a real chain on a free port. Blocks are mined on request. */
export async function startChain() {
  const platform = `${process.platform === 'win32' ? 'win32' : process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  let home
  try {
    home = dirname(createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${platform}/package.json`))
  } catch {
    throw new Error('This example needs a chain: npm install @foundry-rs/anvil')
  }
  const child = spawn(join(home, 'bin/anvil'), ['--port', '0', '--no-mining'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (text) => {
      const found = /Listening on (\S+)/.exec(String(text))
      if (found !== null) resolve(`http://${found[1]}`)
    })
    child.once('exit', () => reject(new Error('anvil did not start')))
  })
  const call = async (method, ...params) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const { result, error } = await response.json()
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }
  const [payer, account] = await call('eth_accounts')
  const pay = async (blocks) => {
    for (let n = 1; n <= blocks; n++) {
      await call('eth_sendTransaction', { from: payer, to: account, value: `0x${n.toString(16)}` })
      await call('anvil_mine', '0x1')
    }
  }
  return { url, call, account, pay, stop: () => child.kill('SIGKILL') }
}
