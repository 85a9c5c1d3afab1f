import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import {
  createTestClient,
  http,
  publicActions,
  walletActions,
  type Address,
  type Hex,
  type TestClient,
  type PublicActions,
  type WalletActions,
} from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'

/** The accounts of anvil's own mnemonic. */
const MNEMONIC = 'test test test test test test test test test test test junk'
export const ACCOUNTS = [0, 1, 2].map((addressIndex) => mnemonicToAccount(MNEMONIC, { addressIndex }))

type Client = TestClient<'anvil'> & PublicActions & WalletActions

/** A real local chain whose blocks the test controls. */
export class Anvil {
  readonly url: string
  readonly client: Client
  readonly #process: ChildProcess

  private constructor(process: ChildProcess, url: string) {
    this.#process = process
    this.url = url
    this.client = createTestClient({
      mode: 'anvil',
      chain: foundry,
      transport: http(url, { retryCount: 0 }),
      cacheTime: 0,
    })
      .extend(publicActions)
      .extend(walletActions) as unknown as Client
  }

  static async start(): Promise<Anvil> {
    // The binary itself: .bin contains a wrapper, and the chain would outlive it.
    const package_ = createRequire(import.meta.url).resolve(
      `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}/package.json`,
    )
    const process_ = spawn(new URL('bin/anvil', `file://${package_}`).pathname, ['--port', '0', '--no-mining'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const url = await new Promise<string>((resolve, reject) => {
      let text = ''
      process_.stdout!.on('data', (part: Buffer) => {
        text += String(part)
        const found = /Listening on (\S+)/.exec(text)
        if (found !== null) resolve(`http://${found[1]!}`)
      })
      process_.once('exit', () => reject(new Error(`anvil did not start: ${text}`)))
    })
    return new Anvil(process_, url)
  }

  async stop(): Promise<void> {
    const exited = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exited
  }

  /** Deploys a token that the first account owns completely. */
  async deployToken(): Promise<Address> {
    const hash = await this.client.sendTransaction({ account: ACCOUNTS[0]!, chain: foundry, data: TOKEN })
    await this.mine()
    const { contractAddress } = await this.client.getTransactionReceipt({ hash })
    return contractAddress!
  }

  /** Adds the transaction to the next block. */
  sendToken(contract: Address, to: Address, value: bigint, from = ACCOUNTS[0]!): Promise<Hex> {
    return this.client.sendTransaction({
      account: from,
      chain: foundry,
      to: contract,
      data: `0x${to.slice(2).padStart(64, '0')}${value.toString(16).padStart(64, '0')}`,
      gas: 100_000n,
    })
  }

  sendNative(to: Address, value: bigint, from = ACCOUNTS[0]!): Promise<Hex> {
    return this.client.sendTransaction({ account: from, chain: foundry, to, value, gas: 21_000n })
  }

  async mine(blocks = 1): Promise<void> {
    await this.client.mine({ blocks })
  }

  /** Replaces the last blocks by empty ones, which removes their transactions. */
  async reorg(depth: number): Promise<void> {
    await this.client.request({ method: 'anvil_reorg' as never, params: [depth, []] as never })
  }
}

/**
 * A token without checks: called with a recipient and an amount, it logs Transfer(caller, recipient, amount).
 *
 *   20 35 60 00 52     mstore(0, calldataload(32))
 *   60 00 35 33 7f…    topics: Transfer, caller, calldataload(0)
 *   60 20 60 00 a3 00  log3(0, 32, …)
 */
const RUNTIME = '602035600052600035337fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60206000a300'
const TOKEN: Hex = `0x60${(RUNTIME.length / 2).toString(16)}600c60003960${(RUNTIME.length / 2).toString(16)}6000f3${RUNTIME}`
