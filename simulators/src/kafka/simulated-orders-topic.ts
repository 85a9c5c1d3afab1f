import { hashOf } from '../kit/seeded-random.ts'
import type { SimulatorPorts } from '../kit/simulator.ts'
import { KafkaSimulator, type KafkaMessage } from './simulator.ts'
import { required } from '../kit/required.ts'

const TOPIC = 'orders'
const PARTITIONS = 3
const COUNT = 200
const ITEMS = ['anchor', 'beacon', 'buoy', 'chart', 'compass', 'lantern', 'oar', 'rope', 'sail', 'winch']
const ORDER_STATUSES = ['placed', 'paid', 'packed', 'shipped', 'delivered']

interface Order {
  readonly id: string
  readonly item: string
  readonly quantity: number
  readonly step: number
}

/** A shop that publishes its orders to a topic: they are placed, progress, and are occasionally cancelled. */
export class SimulatedOrdersTopic {
  readonly #ports: SimulatorPorts
  readonly #cluster: KafkaSimulator
  readonly #orders: Order[] = []
  #createdCount = 0

  constructor(ports: SimulatorPorts, onLook: () => void) {
    this.#ports = ports
    this.#cluster = new KafkaSimulator(ports, { beforeRead: onLook })
    this.#cluster.topics.create(TOPIC, PARTITIONS)
    while (this.#createdCount < COUNT) this.#place()
  }

  listen(): Promise<string[]> {
    return this.#cluster.listen()
  }

  write(n: number): void {
    if (n % 8 === 7) return this.#place()
    const at = Math.floor(this.#ports.random.next() * this.#orders.length)
    const order = required(this.#orders[at], 'orders[at]')
    if (n % 12 === 10) return this.#withdraw(at)
    this.#publish((this.#orders[at] = { ...order, step: Math.min(order.step + 1, ORDER_STATUSES.length - 1) }))
  }

  #place(): void {
    const n = this.#createdCount++
    const order = {
      id: `O-${1_000 + n}`,
      item: required(ITEMS[n % ITEMS.length], 'ITEMS[n % ITEMS.length]'),
      quantity: 1 + Math.floor(this.#ports.random.next() * 9),
      step: 0,
    }
    this.#orders.push(order)
    this.#publish(order)
  }

  #withdraw(at: number): void {
    const [order] = this.#orders.splice(at, 1)
    this.#append({ key: required(order, 'order').id, value: null })
  }

  #publish({ id, item, quantity, step }: Order): void {
    const updatedAt = new Date(this.#ports.clock.now()).toISOString()
    this.#append({ key: id, value: JSON.stringify({ id, item, quantity, status: ORDER_STATUSES[step], updatedAt }) })
  }

  /** A key always maps to the same partition. */
  #append(message: KafkaMessage & { readonly key: string }): void {
    this.#cluster.append(TOPIC, hashOf(message.key) % PARTITIONS, [message])
  }
}
