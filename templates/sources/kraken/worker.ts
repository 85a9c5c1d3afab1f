import { Worker } from 'tidemark'
import { kraken } from 'tidemark/sources/kraken'
import { realOrSimulated } from '@tidemark/simulators'

// Until KRAKEN_SECRET is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('kraken', { unless: 'KRAKEN_SECRET', since: '{{now}}' })
const account = kraken({ apiKey: 'KRAKEN_KEY', apiSecret: 'KRAKEN_SECRET' })

const worker = new Worker({ name: '{{name}}' })
worker.sync('ledgers', { database: worker.database('ledgers'), schedule: '5m', ...simulated(account.ledgers) })
worker.sync('trades', { database: worker.database('trades'), schedule: '5m', ...simulated(account.trades) })

export default worker
