/* A mock Kafka cluster (librdkafka's rdkafka_mock.h) driven over standard input: one command per line, one answer per
 * line ("ok" or "error <why>"), in the order asked. The first line printed is the bootstrap address. Ends when standard
 * input does, so it cannot outlive whoever started it. */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERRORS_MAX 1000

static rd_kafka_mock_cluster_t *cluster;

static void answer(rd_kafka_resp_err_t err) {
  if (err == RD_KAFKA_RESP_ERR_NO_ERROR) puts("ok");
  else printf("error %s\n", rd_kafka_err2name(err));
  fflush(stdout);
}

static rd_kafka_resp_err_t obey(const char *line) {
  char name[256], kind[16];
  int a, b, c;

  if (sscanf(line, "topic %255s %d", name, &a) == 2) return rd_kafka_mock_topic_create(cluster, name, a, 1);
  if (sscanf(line, "down %d", &a) == 1) return rd_kafka_mock_broker_set_down(cluster, a);
  if (sscanf(line, "up %d", &a) == 1) return rd_kafka_mock_broker_set_up(cluster, a);
  if (sscanf(line, "rtt %d %d", &a, &b) == 2) return rd_kafka_mock_broker_set_rtt(cluster, a, b);
  if (sscanf(line, "leader %255s %d %d", name, &a, &b) == 3) return rd_kafka_mock_partition_set_leader(cluster, name, a, b);
  if (sscanf(line, "coordinator %15s %255s %d", kind, name, &a) == 3) return rd_kafka_mock_coordinator_set(cluster, kind, name, a);
  if (sscanf(line, "topic-error %255s %d", name, &a) == 2) {
    rd_kafka_mock_topic_set_error(cluster, name, a);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  /* fail <api key> <error code> <times> */
  if (sscanf(line, "fail %d %d %d", &a, &b, &c) == 3 && c > 0 && c <= ERRORS_MAX) {
    rd_kafka_resp_err_t errors[ERRORS_MAX];
    for (int i = 0; i < c; i++) errors[i] = b;
    rd_kafka_mock_push_request_errors_array(cluster, a, c, errors);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  if (sscanf(line, "fail-no-more %d", &a) == 1) {
    rd_kafka_mock_clear_request_errors(cluster, a);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

int main(int argc, char **argv) {
  char why[512], line[1024];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  /* It would warn that this client knows no broker; it is here only to own the cluster. */
  rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
  rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
  if (handle == NULL) return fprintf(stderr, "%s\n", why), 1;
  cluster = rd_kafka_mock_cluster_new(handle, argc > 1 ? atoi(argv[1]) : 1);
  if (cluster == NULL) return fprintf(stderr, "no cluster could be started\n"), 1;
  printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
  fflush(stdout);
  while (fgets(line, sizeof(line), stdin) != NULL) answer(obey(line));
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(handle);
  return 0;
}
