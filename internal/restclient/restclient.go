// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// WithoutTimeouts returns copies of config and httpClient; neither is changed. httpClient may be nil: then the
// connections are those of config.
//
// Neither copy has a timeout, which would also cut watches and the calls that bound themselves. Where the connections
// are those of config, the requests name their program. Where config sets no limit of requests there is none: the API
// server has its own, and client-go's default of 5 a second holds up a controller of many nodes.
func WithoutTimeouts(config *rest.Config, httpClient *http.Client) (*rest.Config, *http.Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0
	if config.UserAgent == "" { // before the transport is made, which takes it over
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	if httpClient == nil {
		over, err := rest.HTTPClientFor(config)
		return config, over, err
	}
	over := *httpClient
	over.Timeout = 0
	return config, &over, nil
}
