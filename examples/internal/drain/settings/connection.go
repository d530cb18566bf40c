// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// A Connection says which API server is asked, as whom, with the flags of kubectl: those of k8s.io/cli-runtime, -v and
// --vmodule.
type Connection struct {
	config *genericclioptions.ConfigFlags
	klog   *flag.FlagSet
	flags  *pflag.FlagSet
}

// AddFlags adds the flags with their defaults.
func (c *Connection) AddFlags(f *pflag.FlagSet) {
	c.flags = f
	c.config = genericclioptions.NewConfigFlags(true)
	c.config.AddFlags(f)
	f.Lookup("namespace").Usage = "has no effect: nodes have no namespace, and the pods of all namespaces leave"
	f.Lookup("cache-dir").Usage = "has no effect: this command asks for no discovery documents"
	c.klog = flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(c.klog)
	verbosity := pflag.PFlagFromGoFlag(c.klog.Lookup("v"))
	verbosity.Shorthand, verbosity.Usage = "v", "verbosity of the log of client-go on standard error; 0 is no log"
	f.AddFlag(verbosity)
	f.AddGoFlag(c.klog.Lookup("vmodule"))
}

// LogsRequests reports whether the log of client-go is wanted.
func (c *Connection) LogsRequests() bool { return c.flags.Changed("v") || c.flags.Changed("vmodule") }

// RESTConfig reads the kubeconfig as kubectl does, with what the flags say on top. Its Timeout is zero: RequestTimeout
// has it.
func (c *Connection) RESTConfig() (*rest.Config, error) {
	config, err := c.config.ToRESTConfig()
	if err == nil && c.isEmpty(config) {
		err = errors.New("there is none: give --kubeconfig, or set $KUBECONFIG, or give --server")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Timeout, config.UserAgent = 0, "belay-drain"
	return config, nil
}

// isEmpty reports whether config is what client-go makes of nothing, an API server on this machine.
func (c *Connection) isEmpty(config *rest.Config) bool {
	raw, err := c.config.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(raw.Clusters) == 0 && *c.config.APIServer == "" &&
		config.Host == clientcmd.ClusterDefaults.Server
}

// RequestTimeout is the limit of a single request, zero for the default.
func (c *Connection) RequestTimeout() time.Duration {
	d, _ := clientcmd.ParseTimeout(*c.config.Timeout) // validate has seen it
	return d
}

// FlagNotes says which of the flags that were given change nothing here.
func (c *Connection) FlagNotes() []string {
	var notes []string
	for _, name := range []string{"namespace", "cache-dir", "chunk-size"} {
		if f := c.flags.Lookup(name); f != nil && f.Changed {
			notes = append(notes, fmt.Sprintf("--%s %s", name, f.Usage))
		}
	}
	return notes
}

func (c *Connection) validate(p *problems) {
	_, err := clientcmd.ParseTimeout(*c.config.Timeout)
	p.need(err == nil && !strings.HasPrefix(*c.config.Timeout, "-"), "request-timeout", *c.config.Timeout,
		"must be a duration, such as 30s, or 0 for the default")
	for _, extra := range *c.config.ImpersonateUserExtra {
		p.need(strings.Contains(extra, "="), "as-user-extra", extra, "must be KEY=VALUE")
	}
}
