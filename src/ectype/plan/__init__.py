"""What a run will do: settings, presets, and the plan that they are resolved into."""
