// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"fmt"

	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
)

// AddFlags adds the flags with their defaults, among them --feature-gates. What they say takes effect with begin, to be called once, after they were
// parsed. It fails where they don't go together, such as a flag whose gate is not on. What is still to be written when the program ends,
// end writes.
func AddFlags(f *pflag.FlagSet) (begin func() (end func(), err error)) {
	config, gates := logsapi.NewLoggingConfiguration(), featuregate.NewFeatureGate()
	utilruntime.Must(logsapi.AddFeatureGates(gates)) // before the flag, which is for those that are known by then; no input can make it fail
	logsapi.AddFlags(config, f)
	gates.AddFlag(f)
	return func() (func(), error) {
		if err := logsapi.ValidateAndApply(config, gates); err != nil {
			return nil, fmt.Errorf("the flags of the log: %w", err)
		}
		logs.InitLogs()
		return logs.FlushLogs, nil
	}
}
