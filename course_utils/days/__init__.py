"""What belongs to a day: what its checks try, its duel, its drawings. `loader` finds it; nothing else names a day."""
