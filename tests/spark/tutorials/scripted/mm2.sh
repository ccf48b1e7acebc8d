#!/usr/bin/env bash
# Deploys a cluster's three connectors with the calls, flags and words of the scripts that people have for it.
HOST="localhost:8083"
action=$1
cluster=$2

state() { curl -s http://${HOST}/connectors/mm2-$1-${cluster}/status | jq ".connector.state"; }

deploy() {
  if [ "$(state $1)" == '"RUNNING"' ]; then
    echo "$2 connector already deployed"
  else
    echo "Deploying $2 connector"
    curl -X PUT -s -f -H "Content-Type: application/json" --data @mm2-$1-${cluster}.json \
      http://${HOST}/connectors/mm2-$1-${cluster}/config >> /dev/null || echo "ERROR: Failed to deploy $2 connector"
  fi
}

undeploy() {
  curl -X DELETE -s -f http://${HOST}/connectors/mm2-$1-${cluster} || echo "WARN: $2 connector not found"
  echo "$2 connector undeployed"
}

all() { $1 cpc checkpoints; $1 hbc heartbeats; $1 msc source; }

case $action in
deploy) all deploy ;;
undeploy) all undeploy ;;
redeploy) all undeploy; all deploy ;;
status) for kind in cpc hbc msc; do echo "$kind: $(state $kind)"; done ;;
esac
