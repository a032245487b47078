"""What must hold of every drawing."""


def is_whole(fig):
    """Whether everything in a Figure lies within its edges."""
    fig.canvas.draw()
    box, (width, height) = fig.get_tightbbox(), fig.get_size_inches()
    hair = 1e-9  # inches, by which axes as large as the figure may miss its edges
    return box.x0 >= -hair and box.y0 >= -hair and box.x1 <= width + hair and box.y1 <= height + hair
