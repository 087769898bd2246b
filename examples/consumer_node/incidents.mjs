// The smallest consumer in another language: prints every incident. Needs GATEMESH_AMQP_URL.
import amqp from "amqplib";

const EVENTS = "vllm_health_event";
const DEAD = "gatemesh.dead";
const QUEUE = "example.node.incidents";
const LOST = 70; // whoever supervises this program starts it anew

const connection = await amqp.connect(process.env.GATEMESH_AMQP_URL);
connection.on("error", (error) => console.error(error.message));
connection.on("close", () => process.exit(LOST));

const channel = await connection.createChannel();
channel.on("error", (error) => console.error(error.message));
channel.on("close", () => process.exit(LOST));
await channel.prefetch(100);
// gatemesh declares them, and a consumer need not be allowed to: who comes first ends, and comes again.
for (const name of [EVENTS, DEAD]) await channel.checkExchange(name);
await channel.assertQueue(QUEUE, {
  durable: true,
  arguments: {
    "x-queue-type": "quorum",
    "x-delivery-limit": 10,
    "x-dead-letter-exchange": DEAD,
    "x-dead-letter-routing-key": QUEUE,
  },
});
await channel.bindQueue(QUEUE, EVENTS, "incident.v1.#");

function read(delivery) {
  try {
    const it = JSON.parse(delivery.content.toString());
    return typeof it.incident_id === "string" ? it : null;
  } catch {
    return null;
  }
}

await channel.consume(QUEUE, (delivery) => {
  if (delivery === null) process.exit(LOST); // the queue was deleted
  const it = read(delivery);
  if (it === null) return channel.nack(delivery, false, false); // to the dead letters, once
  console.log(it.status, it.instance_id, it.condition, it.reason);
  channel.ack(delivery); // after the work: a crash redelivers
});
