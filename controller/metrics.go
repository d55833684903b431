package controller

import (
	"github.com/prometheus/client_golang/prometheus"
)

// statusRefusals counts what no condition can tell.
var statusRefusals = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "myproxy_status_refused_total",
	Help: "Statuses that the API server refused as invalid: as a rule the CRD is older than the operator.",
})

// Metrics are the operator's own, beside those of controller-runtime.
func Metrics() []prometheus.Collector { return []prometheus.Collector{statusRefusals} }
