// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput_test

// allowedResults are the calls that need no error, with what they mean instead. A panic has no exception.
func allowedResults() map[string]string {
	return map[string]string{
		"checkpoint.ReadFile: nil whole":                               "nil checks for an empty file and for zeros alone",
		"configsync/fields.Policy.Decide: zero receiver and arguments": "nothing changes between two empty documents",
		"configsync/kube.Classified: nil err":                          "no error stays none",
		"configsync/kube.Classified: zero":                             "no error stays none",
		"configsync/kube.NewClient: nil httpClient":                    "nil is a client of the config",
		"configsync/kube.SourceToSpec: nil src":                        "no source is the local config",
		"configsync/kube.SourceToSpec: zero":                           "no source is the local config",
		"configsync/kubelet.Text: nil c":                               "a codec of others leaves the config as it is",
		"configsync/kubelet.Text: zero":                                "a codec of others leaves the config as it is",
		"drain.Drainer.Run: nil report":                                "nil is no report",
		"drain.NewScheduler: zero":                                     "the zero options are the usual choice",
		"drain/kube.NewClient().Delete: nil argument 3":                "nil is the grace period of the pod",
		"drain/kube.NewClient().Evict: nil argument 3":                 "nil is the grace period of the pod",
		"drain/kube.Drainer.Run: nil report":                           "nil is no report",
		"drain/kube.NewClientForConfig: nil httpClient":                "nil is a client of the config",
		"drain/kube.NewEvictionRequester: nil httpClient":              "nil is a client of the config",
		"drain/kube.Transform: nil obj":                                "what is no object stays as it is",
		"drain/kube.Transform: zero":                                   "what is no object stays as it is",
		"identity.Lead: nil work":                                      "nil keeps the Lease until the context ends",
		"identity.Member.Run: nil work":                                "nil keeps the Lease until the context ends",
		"lkg.Tracker.Decide: nil limits":                               "nil has no limits: the defaults hold",
		"machine/kube.NewNodes: nil configs":                           "nil is for machines without a config source",
		"rollout/kube.NewAgentShadow: nil now":                         "nil is time.Now",
		"rollout/kube.NewRecords: nil list":                            "nil lists from the API server",
		"rollout/kube.RunController: nil config":                       "with Caches their client is used",
		"rollout/v1alpha1.InFields: nil err":                           "no error stays none",
		"rollout/v1alpha1.InFields: nil r":                             "an error without a field stays as it is",
		"rollout/v1alpha1.InFields: zero":                              "no error stays none",
		"rollout/v1alpha1.PolicyOf: nil revisions":                     "nil knows no Revision",
	}
}
